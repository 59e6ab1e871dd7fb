-- sliding-log: remembers every hit of the window. Twin: src/core/algorithms/sliding-log.ts, which explains the sums.
-- State: the sum up to which hits are forgotten as 4 bytes, then per entry its time as a double and its sum as 4 bytes.
-- ARGV from at: 1 hits per window   2 window in us   3 count denied (0 or 1)

local LOG_SUM_MODULUS = 4294967296
local LOG_ENTRY_BYTES = 12
local LOG_HEAD_BYTES = 4
-- The log of a counter that was never touched.
local EMPTY_LOG = struct.pack('>I4', 0)

local function log_wrap_sum(sum)
  if sum < 0 then
    return sum + LOG_SUM_MODULUS
  end
  return sum >= LOG_SUM_MODULUS and sum - LOG_SUM_MODULUS or sum
end

-- Exact as long as a log holds fewer than 2^32 hits: those of a log are far fewer.
local function log_hits_between(earlier, later)
  return log_wrap_sum(later - earlier)
end

-- Entries count from 0.
local function log_time(log, index)
  local time_us = struct.unpack('>d', log, LOG_HEAD_BYTES + index * LOG_ENTRY_BYTES + 1)
  return time_us
end

-- The sum before the entry with this index.
local function log_sum(log, index)
  local sum = struct.unpack('>I4', log, index * LOG_ENTRY_BYTES + 1)
  return sum
end

-- The first entry, from one to before another, that is later than `us`; the end when none is.
local function log_first_after(log, from, to, us)
  local low, high = from, to
  while low < high do
    local middle = floor((low + high) / 2)
    if log_time(log, middle) > us then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- The first entry, from one to before another, after which no more than `most` hits came up to `sum`.
local function log_first_within(log, from, to, sum, most)
  local low, high = from, to
  while low < high do
    local middle = floor((low + high) / 2)
    if log_hits_between(log_sum(log, middle + 1), sum) <= most then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- Returns the log (false when there is none) and its number of entries, or nil when the key holds something else.
local function load_log(key)
  local log = load_value(key)
  if not log then
    return log, 0
  end
  local count = (#log - LOG_HEAD_BYTES) / LOG_ENTRY_BYTES
  if count < 0 or count ~= floor(count) then
    return nil
  end
  return log, count
end

local function step_sliding_log(key, now_us, hits, at)
  local limit, period_us, count_denied = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local state, count = load_log(key)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  local log = state or EMPTY_LOG
  local last = log_sum(log, count)
  local changed = false

  -- Time stands still while the clock is behind the newest entry.
  local tail_us = count == 0 and now_us or log_time(log, count - 1)
  local stamp_us = max(now_us, tail_us)
  local held = log_hits_between(log_sum(log, 0), last)
  local first = max(
    log_first_after(log, 0, count, stamp_us - period_us),
    log_first_within(log, 0, count, last, held - 1) -- the entries before are forgotten
  )
  local used = min(held, log_hits_between(log_sum(log, first), last))

  -- The log to keep: entries from `first` to before `up_to`, and behind them one with `tail_us` and `tail_sum`, unless
  -- nothing is used.
  local up_to = used == 0 and count or count - 1
  local tail_sum = last
  local rewrite = first * 4 >= count
  if tail_us - now_us > MAX_AHEAD_US then
    up_to = log_first_after(log, first, up_to, now_us - 1)
    tail_us = now_us
    stamp_us = now_us
    rewrite = true
    changed = true
  end

  local asked = hits == 0 and 1 or hits
  local allowed = asked <= 0 or asked <= limit - used
  if hits > 0 and (allowed or count_denied == 1) then
    -- A refused hit pushes the oldest out of a log that holds the limit or more: they would be gone before it.
    local most = max(limit, used)
    if used == 0 or tail_us ~= stamp_us then
      up_to = count
      tail_us = stamp_us
    end
    tail_sum = log_wrap_sum(last + min(hits, most))
    used = min(used + min(hits, most), most)
    changed = true
  elseif hits < 0 and used > 0 then
    if -hits >= used then
      up_to = first
      tail_sum = 0
      used = 0
    else
      -- The newest are given back.
      local back_to = log_first_within(log, first, up_to, last, -hits)
      if back_to < up_to then
        up_to = back_to
        tail_us = log_time(log, back_to)
      end
      tail_sum = log_wrap_sum(last + hits)
      used = used + hits
    end
    rewrite = true
    changed = true
  end

  local remaining = max(0, limit - used)
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > limit then
    retry_after_us = -1
  else
    local freed_by = log_first_within(log, first, up_to, tail_sum, limit - asked)
    retry_after_us = (freed_by < up_to and log_time(log, freed_by) or tail_us) + period_us - now_us
  end
  local reset_after_us = used == 0 and 0 or tail_us + period_us - now_us
  if changed then
    local floor_sum = struct.pack('>I4', log_wrap_sum(tail_sum - used))
    local tail = used > 0 and struct.pack('>dI4', tail_us, tail_sum) or ''
    local from_byte, to_byte = LOG_HEAD_BYTES + first * LOG_ENTRY_BYTES + 1, LOG_HEAD_BYTES + up_to * LOG_ENTRY_BYTES
    local kept
    if rewrite then
      kept = keep_state(key, struct.pack('>c0c0c0', floor_sum, log:sub(from_byte, to_byte), tail), reset_after_us)
    else
      kept = (allowed or keep_bytes(key, 0, floor_sum)) and keep_bytes(key, to_byte, tail) and keep_until(key, reset_after_us)
    end
    if not kept then
      return refuse(WRITE_REFUSED)
    end
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end

algorithms.sliding_window_log = { params = 3, step = step_sliding_log }
