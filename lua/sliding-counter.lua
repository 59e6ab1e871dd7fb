-- sliding-counter: two aligned windows stand for the sliding one. Twin: src/core/algorithms/sliding-counter.ts, which
-- explains the shares.
-- State: window (number since 1970), hits in it, hits in the one before as three doubles.
-- ARGV from at: 1 hits per window   2 window in us   3 us per tick   4 count denied (0 or 1)

-- For how many ticks a window with so many hits may be covered while so many hits are free; -1 if it must not be at all.
local function most_ticks(free, hits, ticks)
  if free < 0 then
    return -1
  end
  return hits == 0 and ticks or floor((free * ticks) / hits)
end

local function step_sliding_counter(key, now_us, hits, at)
  local limit, period_us = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local tick_us, count_denied = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local now_window = floor(now_us / period_us)
  local window = -1
  local current = 0
  local previous = 0
  local changed = false

  local state = load_state(key, 24)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  if state then
    window, current, previous = struct.unpack('>ddd', state)
  end
  if window < now_window or current + previous == 0 then
    previous = window == now_window - 1 and current or 0
    current = 0
    window = now_window
  elseif window * period_us - now_us > MAX_AHEAD_US then
    -- Time stood still where its window began, with all of the previous one inside: these are hits of now, too.
    window = now_window
    current = current + previous
    previous = 0
    changed = true
  end
  local ticks = period_us / tick_us
  -- Of the previous window, what the sliding one still covers.
  local covered_ticks = ticks - floor(max(0, now_us - window * period_us) / tick_us)

  local asked = hits == 0 and 1 or hits
  local allowed = asked <= 0
    or (asked <= limit and covered_ticks <= most_ticks(limit - current - asked, previous, ticks))
  if hits > 0 and (allowed or count_denied == 1) then
    current = current + min(hits, MAX_EXACT - current - previous)
    changed = true
  elseif hits < 0 and current + previous > 0 then
    -- The newest are given back.
    previous = max(0, previous - max(0, -hits - current))
    current = max(0, current + hits)
    changed = true
  end

  local room = limit - current
  local remaining
  if covered_ticks > most_ticks(room, previous, ticks) then
    remaining = 0
  else
    remaining = room - ceil((previous * covered_ticks) / ticks)
  end
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > limit then
    retry_after_us = -1
  else
    -- Once less of the previous window is covered; or of this one, which is then the previous.
    local most = most_ticks(room - asked, previous, ticks)
    local most_after = most_ticks(limit - asked, current, ticks)
    if most >= 0 then
      retry_after_us = window * period_us + (ticks - most) * tick_us - now_us
    else
      retry_after_us = (window + 1) * period_us + (ticks - most_after) * tick_us - now_us
    end
  end
  local reset_after_us = (window + (current > 0 and 2 or 1)) * period_us - now_us
  reset_after_us = current + previous == 0 and 0 or reset_after_us
  if changed and not keep_state(key, struct.pack('>ddd', window, current, previous), reset_after_us) then
    return refuse(WRITE_REFUSED)
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end

algorithms.sliding_window_counter = { params = 4, step = step_sliding_counter }
