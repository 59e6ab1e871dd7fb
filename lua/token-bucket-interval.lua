-- token-bucket-interval: tokens come at once at the end of each interval. Twin:
-- src/core/algorithms/token-bucket-interval.ts.
-- State: refill, since, used as three doubles.
-- ARGV from at: 1 interval in us   2 tokens per interval   3 burst   4 count denied (0 or 1)

local function step_interval(key, now_us, hits, at)
  local interval_us, refill = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local burst, count_denied = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  -- Tokens per interval: this limit's, or still those of the limit under which the counter was written.
  local pace = refill
  local since = now_us
  local used = 0
  local changed = false

  local state = load_state(key, 24)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  if state then
    pace, since, used = struct.unpack('>ddd', state)
    if since - now_us > MAX_AHEAD_US then
      since = now_us
      changed = true
    end
    local intervals = floor((now_us - since) / interval_us)
    if intervals > 0 then
      -- Comparing first keeps the product below what was used, so it is exact.
      used = intervals >= ceil(used / pace) and 0 or used - intervals * pace
      since = since + intervals * interval_us
    end
    if used == 0 then
      since = now_us
    end
  end
  -- A raised limit holds from the first touch on. Under a lowered one what was used comes back at its old pace until
  -- something is charged: at the new pace a bucket that was empty would stay so far longer than the new limit asks.
  if pace < refill then
    pace = refill
    changed = true
  end

  local asked = hits == 0 and 1 or hits
  local allowed = asked <= 0 or (asked <= burst and used <= burst - asked)
  local charges = hits < 0 and used > 0
  if hits > 0 then
    charges = allowed or count_denied == 1
  end
  if charges then
    pace = refill
    local most = min(MAX_EXACT, refill * floor(MAX_PERIOD_US / interval_us))
    used = min(max(0, used + hits), most)
    changed = true
  end

  local remaining = max(0, burst - used)
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > burst then
    retry_after_us = -1
  else
    retry_after_us = ceil((used - (burst - asked)) / pace) * interval_us - (now_us - since)
  end
  local reset_after_us = used == 0 and 0 or ceil(used / pace) * interval_us - (now_us - since)
  if changed then
    if not keep_state(key, struct.pack('>ddd', pace, since, used), reset_after_us) then
      return refuse(WRITE_REFUSED)
    end
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end

algorithms['token_bucket.interval'] = { params = 4, step = step_interval }
