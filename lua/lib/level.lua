-- level: the exact arithmetic behind every algorithm with a steady rate. Twin: src/core/algorithms/level.ts, which
-- explains the units.
-- State: q, n, w, ts, level as five doubles.
-- ARGV from at: 1 q (us per tick)   2 n (units drained per tick)   3 w (units per hit)   4 burst   5 count denied (0 or 1)

-- 2^-51: more than a division and a product of doubles can lose together, in proportion.
local ROUNDING = 2 ^ -51

-- Comparing first keeps the product below the level, so it is exact.
local function drain(level, ticks, n)
  if ticks <= 0 then
    return level
  end
  if ticks >= ceil(level / n) then
    return 0
  end
  return level - ticks * n
end

local function step_level(key, now_us, hits, at)
  local q, n, w = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local burst, count_denied = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local capacity = burst * w
  local now_tick = floor(now_us / q)
  local ts = now_tick
  local level = 0
  local changed = false

  local state = load_state(key, 40)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  if state then
    local state_q, state_n, state_w
    state_q, state_n, state_w, ts, level = struct.unpack('>ddddd', state)
    if ts * state_q - now_us > MAX_AHEAD_US then
      ts = floor(now_us / state_q)
      changed = true
    end
    if state_q ~= q or state_n ~= n or state_w ~= w then
      -- The limit was changed: drain at the old rate first, then carry the used part over, rounded up by one unit.
      level = drain(level, floor(now_us / state_q) - ts, state_n)
      local whole = floor(level / state_w)
      local part = (level - whole * state_w) / state_w
      level = min(whole * w + (part > 0 and ceil(part * w + w * ROUNDING) or 0), capacity)
      ts = ceil(max(now_us, ts * state_q) / q)
      changed = true
    end
  end
  level = drain(level, now_tick - ts, n)
  ts = level == 0 and now_tick or max(ts, now_tick)

  local asked = hits == 0 and 1 or hits
  local allowed = true
  if asked > 0 then
    allowed = asked <= burst and level <= capacity - asked * w
    if hits > 0 and allowed then
      level = level + hits * w
      changed = true
    elseif hits > 0 and count_denied == 1 then
      -- A debt is bounded to what drains within the longest period, or its times would not be exact.
      level = max(level, min(level + hits * w, MAX_EXACT - n, n * floor(MAX_PERIOD_US / q)))
      changed = true
    end
  elseif level > 0 then
    level = -hits >= ceil(level / w) and 0 or level + hits * w
    changed = true
  end

  local remaining = level >= capacity and 0 or floor((capacity - level) / w)
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > burst then
    retry_after_us = -1
  else
    retry_after_us = (ts + ceil((level - (capacity - asked * w)) / n)) * q - now_us
  end
  local reset_after_us = level == 0 and 0 or (ts + ceil(level / n)) * q - now_us
  if changed then
    local packed = struct.pack('>ddddd', q, n, w, ts, level)
    if not keep_state(key, packed, (ts + ceil(level / n)) * q - now_us) then
      return refuse(WRITE_REFUSED)
    end
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end
