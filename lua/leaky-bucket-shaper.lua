-- leaky-bucket-shaper: hits leave evenly, and who comes too early is told how long to wait. Twin:
-- src/core/algorithms/leaky-bucket-shaper.ts, which explains the units.
-- State: q, n, ts, wait as four doubles.
-- ARGV from at: 1 q (us per tick)   2 n (parts of a tick)   3 w (parts per hit)   4 longest wait in ticks
--               5 hits that may come at once   6 count denied (0 or 1)
-- Returns a sixth integer: delay_us.

local function step_shaper(key, now_us, hits, at)
  local q, n, w = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local max_ticks, burst, count_denied = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local now_tick = floor(now_us / q)
  local changed = false
  -- At tick `ts` the next hit waits for `ticks` and `parts` n-ths of one.
  local ts = now_tick
  local ticks = 0
  local parts = 0

  local state = load_state(key, 32)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  -- What is kept, in the units in which it was written.
  local kept_q, kept_n, kept_ts, kept_wait
  if state then
    kept_q, kept_n, kept_ts, kept_wait = struct.unpack('>dddd', state)
    if kept_ts * kept_q - now_us > MAX_AHEAD_US then
      kept_ts = floor(now_us / kept_q)
      changed = true
    end
    ts = kept_ts
    ticks = floor(kept_wait / kept_n)
    parts = kept_wait - ticks * kept_n
    if kept_q ~= q or kept_n ~= n then
      -- The rate has changed, but those who were told to wait leave as they were told, and the next one after them: the
      -- moment stays, rounded up to a tick.
      local stamp_us = ts * kept_q
      local free_us = stamp_us + ticks * kept_q + ceil(parts * kept_q / kept_n)
      ts = floor(stamp_us / q)
      ticks = ceil(free_us / q) - ts
      parts = 0
    end
    if now_tick - ts > ticks then
      ticks = 0
      parts = 0
    elseif now_tick > ts then
      ticks = ticks - (now_tick - ts)
    end
    ts = ticks == 0 and parts == 0 and now_tick or max(ts, now_tick)
  end

  local asked = hits == 0 and 1 or hits
  -- What may still be added before a hit would wait too long; below 0 when the next one would.
  local room = ticks > max_ticks and -1 or (max_ticks - ticks) * n - parts
  local allowed = asked <= 0 or (asked <= burst and (asked - 1) * w <= room)
  local delay_ticks = 0
  if allowed and hits >= 0 then
    delay_ticks = ticks + (parts > 0 and 1 or 0)
  end
  local delay_us = delay_ticks == 0 and 0 or (ts + delay_ticks) * q - max(now_us, ts * q)

  local charges = hits < 0 and (ticks > 0 or parts > 0)
  if hits > 0 then
    charges = allowed or count_denied == 1
  end
  if charges then
    local most_ticks = floor(max_level(q, n) / n)
    local wait = ticks >= most_ticks and most_ticks * n or ticks * n + parts
    if hits < 0 then
      wait = -hits >= ceil(wait / w) and 0 or wait + hits * w
    elseif allowed then
      wait = wait + hits * w
    else
      wait = min(wait + hits * w, most_ticks * n)
    end
    ticks = floor(wait / n)
    parts = wait - ticks * n
    room = ticks > max_ticks and -1 or (max_ticks - ticks) * n - parts
    kept_q, kept_n, kept_ts, kept_wait = q, n, ts, wait
    changed = true
  end

  local remaining = room < 0 and 0 or floor(room / w) + 1
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > burst then
    retry_after_us = -1
  else
    retry_after_us = (ts + ticks - max_ticks + ceil(((asked - 1) * w + parts) / n)) * q - now_us
  end
  local reset_ticks = ticks + (parts > 0 and 1 or 0)
  local reset_after_us = reset_ticks == 0 and 0 or (ts + reset_ticks) * q - now_us
  if changed then
    local ttl_us = kept_wait == 0 and 0 or (kept_ts + ceil(kept_wait / kept_n)) * kept_q - now_us
    if not keep_state(key, struct.pack('>dddd', kept_q, kept_n, kept_ts, kept_wait), ttl_us) then
      return refuse(WRITE_REFUSED)
    end
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us, delay_us
end

algorithms['leaky_bucket.shaper'] = { params = 6, step = step_shaper }
