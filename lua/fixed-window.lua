-- fixed-window: a counter per aligned window. Twin: src/core/algorithms/fixed-window.ts.
-- State: window (number since 1970), count as two doubles.
-- ARGV from at: 1 hits per window   2 window in us   3 count denied (0 or 1)

local function step_fixed_window(key, now_us, hits, at)
  local limit, period_us, count_denied = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local now_window = floor(now_us / period_us)
  local window = -1
  local count = 0
  local changed = false

  local state = load_state(key, 16)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  if state then
    window, count = struct.unpack('>dd', state)
  end
  if window < now_window then
    window = now_window
    count = 0
  elseif window * period_us - now_us > MAX_AHEAD_US then
    window = now_window
    changed = true
  end

  local allowed = true
  if hits > 0 then
    allowed = count + hits <= limit
    if allowed or count_denied == 1 then
      count = min(count + hits, MAX_EXACT)
      changed = true
    end
  elseif hits == 0 then
    allowed = count <= limit
  elseif count > 0 then
    count = max(0, count + hits)
    changed = true
  end

  local remaining = count >= limit and 0 or limit - count
  local reset_after_us = (window + 1) * period_us - now_us
  -- A look tells when one hit would pass, which may be later although the look itself is answered OK.
  local asked = hits == 0 and 1 or hits
  local passes = allowed
  if hits == 0 then
    passes = count + 1 <= limit
  end
  local retry_after_us
  if passes then
    retry_after_us = 0
  else
    retry_after_us = asked > limit and -1 or reset_after_us
  end
  if changed and not keep_state(key, struct.pack('>dd', window, count), reset_after_us) then
    return refuse(WRITE_REFUSED)
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end

algorithms.fixed_window = { params = 3, step = step_fixed_window }
