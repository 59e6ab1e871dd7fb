-- prelude: what every algorithm shares. Joined in front of the algorithms; lua/batch.lua follows them.
--
-- An algorithm file registers itself as
--   algorithms.<name> = { params = <how many numbers it reads>, step = function(key, now_us, hits, at) ... end }
-- where `at` is the position in ARGV of its first number. `step` does the same as its twin in src/core/algorithms/ and
-- returns five integers: status, allowed, remaining, retry_after_us, reset_after_us; and delay_us if it shapes traffic.
-- Numbers here are the same doubles as in the twin. They go to Redis as they are: joining or printing them keeps 14 digits.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- 2^53-1, the largest integer that a double holds exactly.
local MAX_EXACT = 9007199254740991
-- 2^52 us, the longest period and the longest time to drain.
local MAX_PERIOD_US = 4503599627370496
-- A stamp further ahead of the clock than this is from a bad clock and is set back to now.
local MAX_AHEAD_US = 5000000
-- Counters live this much longer than they must: expiry only collects garbage.
local SLACK_MS = 1000

-- Status of a check that could not be judged.
local FOREIGN_VALUE = -1
local WRITE_REFUSED = -2

local algorithms = {}
-- False while a request is only being judged; see batch.lua.
local writing = true
-- True once a write showed that this server is a replica, where none can work.
local replica = false

-- The text at a key. Returns false when there is none, and nil when the key holds something else.
local function load_value(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    return nil
  end
  return value
end

-- The packed state at a key. Returns the value (false when there is none), or nil when the key holds something else.
local function load_state(key, bytes)
  local value = load_value(key)
  if value and #value ~= bytes then
    return nil
  end
  return value
end

-- How long a counter is kept that is as good as none after `ttl_us`.
local function kept_ms(ttl_us)
  return ceil(max(0, ttl_us) / 1000) + SLACK_MS
end

-- Whether a write worked, by what redis.pcall returned. Notes when it met a replica.
local function worked(reply)
  local failure = type(reply) == 'table' and reply.err
  if failure and failure:find('READONLY', 1, true) then
    replica = true
  end
  return not failure
end

-- Keeps a packed state until it is as good as none. Returns whether that worked.
local function keep_state(key, value, ttl_us)
  return not writing or worked(redis.pcall('SET', key, value, 'PX', kept_ms(ttl_us)))
end

-- Overwrites bytes of a packed state that is there, from an offset on that may be its end. Returns whether that worked;
-- once one write of a call has, Redis refuses none for want of memory.
local function keep_bytes(key, offset, bytes)
  return not writing or worked(redis.pcall('SETRANGE', key, offset, bytes))
end

-- Keeps a state that is there until it is as good as none. Returns whether that worked.
local function keep_until(key, ttl_us)
  return not writing or worked(redis.pcall('PEXPIRE', key, kept_ms(ttl_us)))
end

local function refuse(status)
  return status, 0, 0, 0, 0
end
