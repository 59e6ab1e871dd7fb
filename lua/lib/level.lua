-- level: the exact arithmetic behind every algorithm with a steady rate. Twin: src/core/algorithms/level.ts, which
-- explains the units.
-- State: q, n, w, ts, level as five doubles.
-- ARGV from at: 1 q (us per tick)   2 n (units drained per tick)   3 w (units per hit)   4 burst   5 count denied (0 or 1)

-- 2^-51: more than a division and a product of doubles can lose together, in proportion.
local ROUNDING = 2 ^ -51

-- The largest level that drains within the longest period: beyond, its times would not be exact.
local function max_level(q, n)
  return min(MAX_EXACT - n, n * floor(MAX_PERIOD_US / q))
end

-- A level in the units of another limit: in proportion, rounded up. What was used stays used.
local function carry(level, from_w, q, n, w)
  local whole = floor(level / from_w)
  local part = (level - whole * from_w) / from_w
  return min(whole * w + (part > 0 and ceil(part * w + w * ROUNDING) or 0), max_level(q, n))
end

-- The tick of a level that was carried over: never earlier than it was true. An empty one is as good as new.
local function carry_tick(level, stamp_us, now_us, q)
  if level == 0 then
    return floor(now_us / q)
  end
  return ceil(max(now_us, stamp_us) / q)
end

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
  -- The units that the level is in: this limit's, or still those of the limit under which it was written.
  local unit_q, unit_n, unit_w = q, n, w
  local ts = floor(now_us / q)
  local level = 0
  local changed = false

  local state = load_state(key, 40)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  if state then
    unit_q, unit_n, unit_w, ts, level = struct.unpack('>ddddd', state)
    local now_tick = floor(now_us / unit_q)
    if ts * unit_q - now_us > MAX_AHEAD_US then
      ts = now_tick
      changed = true
    end
    level = drain(level, now_tick - ts, unit_n)
    ts = level == 0 and now_tick or max(ts, now_tick)
  end
  -- A faster limit holds from the first touch on. Under a slower one what was used goes on draining at its old pace until
  -- something is charged: at the new pace a counter that was full would stay closed far longer than the new limit asks.
  local foreign = unit_q ~= q or unit_n ~= n or unit_w ~= w
  if foreign and unit_n / unit_w / unit_q <= n / w / q then
    level = carry(level, unit_w, q, n, w)
    ts = carry_tick(level, ts * unit_q, now_us, q)
    unit_q, unit_n, unit_w = q, n, w
    foreign = false
    changed = true
  end

  local asked = hits == 0 and 1 or hits
  local allowed = asked <= 0 or (asked <= burst and ceil(level / unit_w) <= burst - asked)
  local charges = hits < 0 and level > 0
  if hits > 0 then
    charges = allowed or count_denied == 1
  end
  if charges then
    if foreign then
      level = carry(level, unit_w, q, n, w)
      ts = carry_tick(level, ts * unit_q, now_us, q)
      unit_q, unit_n, unit_w = q, n, w
    end
    if hits < 0 then
      level = -hits >= ceil(level / w) and 0 or level + hits * w
    elseif allowed then
      level = min(level, (burst - hits) * w) + hits * w
    else
      level = max(level, min(level + hits * w, max_level(q, n)))
    end
    changed = true
  end

  local remaining = max(0, burst - ceil(level / unit_w))
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > burst then
    retry_after_us = -1
  else
    retry_after_us = (ts + ceil((level - (burst - asked) * unit_w) / unit_n)) * unit_q - now_us
  end
  local reset_after_us = level == 0 and 0 or (ts + ceil(level / unit_n)) * unit_q - now_us
  if changed then
    local packed = struct.pack('>ddddd', unit_q, unit_n, unit_w, ts, level)
    if not keep_state(key, packed, reset_after_us) then
      return refuse(WRITE_REFUSED)
    end
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end
