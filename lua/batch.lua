-- batch: judges the checks of many requests in one call. Joined behind the algorithms.
-- KEYS     the counter of each check, all requests one after the other
-- ARGV     1 now_us, or "" for the server's own time
--          then per request: its number of checks; 0 to charge each alone, 1 to spare companions of a refused check,
--          2 to spare them because something else has refused already, 3 to judge each and charge nothing;
--          then per check: algorithm, hits, the algorithm's numbers
-- returns  per check: status (0, -1 the key holds something else, -2 the write was refused),
--          allowed (0 or 1), remaining, retry_after_us (-1 for never), reset_after_us;
--          the error READONLY from a replica, where nothing was charged

local now_us = tonumber(ARGV[1])
if now_us == nil then
  local time = redis.call('TIME')
  now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local replies = {}

local function judge(key_at, at, hits)
  local algorithm = algorithms[ARGV[at]]
  return algorithm.step(KEYS[key_at], now_us, hits, at + 2)
end

-- Answers a check in `replies` and returns the position of the next one in ARGV.
local function answer(key_at, at, hits)
  local base = (key_at - 1) * 5
  replies[base + 1], replies[base + 2], replies[base + 3], replies[base + 4], replies[base + 5] = judge(key_at, at, hits)
  return at + 2 + algorithms[ARGV[at]].params
end

-- The checks of a request of which each that would be refused is charged alone, and the others are only looked at.
local function answer_sparing(key_at, at, checks, any)
  writing = false
  local refused = {}
  local check_at = at
  for i = 0, checks - 1 do
    local _, allowed = judge(key_at + i, check_at, tonumber(ARGV[check_at + 1]))
    refused[i] = allowed == 0
    any = any or refused[i]
    check_at = check_at + 2 + algorithms[ARGV[check_at]].params
  end
  writing = true
  for i = 0, checks - 1 do
    local hits = tonumber(ARGV[at + 1])
    if any and hits > 0 and not refused[i] then
      hits = 0
    end
    at = answer(key_at + i, at, hits)
  end
  return at
end

local key_at, at = 1, 2
while key_at <= #KEYS do
  local checks, mode = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  if mode == 1 or mode == 2 then
    at = answer_sparing(key_at, at, checks, mode == 2)
  else
    writing = mode == 0
    for i = 0, checks - 1 do
      at = answer(key_at + i, at, tonumber(ARGV[at + 1]))
    end
  end
  key_at = key_at + checks
end
if replica then
  return { err = 'READONLY this server is a replica' }
end
return replies
