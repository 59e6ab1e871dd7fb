-- batch: judges the checks of many requests in one call. Joined behind the algorithms.
-- KEYS     the counter of each check, all requests one after the other
-- ARGV     1 now_us, or "" for the server's own time
--          then per request: its number of checks; 0 to charge each alone, 1 to spare companions of a refused check,
--          2 to spare them because something else has refused already, 3 to charge all or none, 4 for none because
--          something else has refused already, 5 for all or none where some quota passes already;
--          from 3 on the role of each check: 0 refuses, -1 does not, above 0 is a quota descriptor's number;
--          then per check: algorithm, hits, the algorithm's numbers
-- returns  per check: status (0, -1 the key holds something else, -2 the write was refused),
--          allowed (0 or 1), remaining, retry_after_us (-1 for never), reset_after_us, delay_us

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
  local base = (key_at - 1) * 6
  local status, allowed, remaining, retry_after_us, reset_after_us, delay_us = judge(key_at, at, hits)
  replies[base + 1], replies[base + 2], replies[base + 3] = status, allowed, remaining
  replies[base + 4], replies[base + 5], replies[base + 6] = retry_after_us, reset_after_us, delay_us or 0
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

-- Hits of all checks of a request that are charged to one counter, by key.
local function hits_by_key(key_at, at, checks)
  local sums = {}
  for i = 0, checks - 1 do
    local hits = tonumber(ARGV[at + 1])
    if hits > 0 then
      sums[KEYS[key_at + i]] = min((sums[KEYS[key_at + i]] or 0) + hits, MAX_EXACT)
    end
    at = at + 2 + algorithms[ARGV[at]].params
  end
  return sums
end

-- Answers what a request gives back, which takes place in any case and first, so that the rest is judged with it.
local function answer_refunds(key_at, at, checks)
  for i = 0, checks - 1 do
    local hits = tonumber(ARGV[at + 1])
    if hits < 0 then
      answer(key_at + i, at, hits)
    end
    at = at + 2 + algorithms[ARGV[at]].params
  end
end

-- The checks of a request that is charged as a whole or not at all.
local function answer_atomic(key_at, at, checks, mode)
  local roles_at = at
  at = at + checks
  answer_refunds(key_at, at, checks)
  local sums = hits_by_key(key_at, at, checks)
  local lacks_room = {}
  local refused = mode == 4
  local quotas, quotas_over = 0, 0
  local seen, over = {}, {}
  writing = false
  local check_at = at
  for i = 0, checks - 1 do
    local hits = tonumber(ARGV[check_at + 1])
    local role = tonumber(ARGV[roles_at + i])
    if hits >= 0 then
      local _, allowed = judge(key_at + i, check_at, hits > 0 and sums[KEYS[key_at + i]] or 0)
      lacks_room[i] = allowed == 0
    end
    if role == 0 then
      refused = refused or lacks_room[i]
    elseif role > 0 then
      if not seen[role] then
        seen[role] = true
        quotas = quotas + 1
      end
      if lacks_room[i] and not over[role] then
        over[role] = true
        quotas_over = quotas_over + 1
      end
    end
    check_at = check_at + 2 + algorithms[ARGV[check_at]].params
  end
  if quotas > 0 and quotas == quotas_over and mode ~= 5 then
    refused = true
  end
  for i = 0, checks - 1 do
    local hits = tonumber(ARGV[at + 1])
    if hits < 0 then
      at = at + 2 + algorithms[ARGV[at]].params
    else
      writing = hits == 0 or not (refused or lacks_room[i])
      if hits > 0 and lacks_room[i] then
        hits = sums[KEYS[key_at + i]]
      elseif refused then
        hits = 0
      end
      at = answer(key_at + i, at, hits)
    end
  end
  writing = true
  return at
end

local key_at, at = 1, 2
while key_at <= #KEYS do
  local checks, mode = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  if mode >= 3 then
    at = answer_atomic(key_at, at, checks, mode)
  elseif mode > 0 then
    at = answer_sparing(key_at, at, checks, mode == 2)
  else
    for i = 0, checks - 1 do
      at = answer(key_at + i, at, tonumber(ARGV[at + 1]))
    end
  end
  key_at = key_at + checks
end
return replies
