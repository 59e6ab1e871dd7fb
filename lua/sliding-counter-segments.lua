-- sliding-counter-segments: counts per part of the window. Twin: src/core/algorithms/sliding-counter-segments.ts.
-- State: segment (number since 1970), then the hits in it, in the one before and so on, as doubles.
-- ARGV from at: 1 hits per window   2 segment in us   3 segments per window   4 count denied (0 or 1)

-- Counts from one to another as doubles. By halves, because packing copies what is packed already.
local function pack_counts(counts, from, to)
  if from == to then
    return struct.pack('>d', counts[from])
  end
  local middle = floor((from + to) / 2)
  return struct.pack('>c0c0', pack_counts(counts, from, middle), pack_counts(counts, middle + 1, to))
end

-- How many segments back the newest hits are; only for counts that are not all 0.
local function newest_segment(counts)
  local back = 0
  while counts[back] == 0 do
    back = back + 1
  end
  return back
end

local function step_segments(key, now_us, hits, at)
  local limit, segment_us = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local segments, count_denied = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local now_segment = floor(now_us / segment_us)
  local segment = -1
  local changed = false

  local state = load_state(key, (segments + 2) * 8)
  if state == nil then
    return refuse(FOREIGN_VALUE)
  end
  if state then
    segment = struct.unpack('>d', state)
  end
  local passed = max(0, now_segment - segment)
  local counts = {}
  local used = 0
  for back = 0, segments do
    local count = 0
    if state and back >= passed then
      count = struct.unpack('>d', state, (back - passed + 1) * 8 + 1)
    end
    counts[back] = count
    used = used + count
  end
  if segment < now_segment or used == 0 then
    segment = now_segment
  elseif segment * segment_us - now_us > MAX_AHEAD_US then
    -- What lies ahead are hits of now.
    for back = 1, segments do
      local count = counts[back]
      local target = max(0, back - (segment - now_segment))
      counts[back] = 0
      counts[target] = counts[target] + count
    end
    segment = now_segment
    changed = true
  end

  local asked = hits == 0 and 1 or hits
  local allowed = asked <= 0 or asked <= limit - used
  if hits > 0 and (allowed or count_denied == 1) then
    local charged = min(hits, MAX_EXACT - used)
    counts[0] = counts[0] + charged
    used = used + charged
    changed = true
  elseif hits < 0 and used > 0 then
    -- The newest are given back.
    local left = -hits
    for back = 0, segments do
      local taken = min(left, counts[back])
      counts[back] = counts[back] - taken
      left = left - taken
      used = used - taken
    end
    changed = true
  end

  local remaining = max(0, limit - used)
  local retry_after_us
  if allowed then
    retry_after_us = 0
  elseif asked > limit then
    retry_after_us = -1
  else
    -- The oldest leave until the hits fit.
    local left = used
    local back = segments + 1
    while left > limit - asked do
      back = back - 1
      left = left - counts[back]
    end
    retry_after_us = (segment + segments + 1 - back) * segment_us - now_us
  end
  local reset_after_us = used == 0 and 0 or (segment + segments + 1 - newest_segment(counts)) * segment_us - now_us
  if changed then
    local packed = struct.pack('>dc0', segment, pack_counts(counts, 0, segments))
    if not keep_state(key, packed, reset_after_us) then
      return refuse(WRITE_REFUSED)
    end
  end
  return 0, allowed and 1 or 0, remaining, retry_after_us, reset_after_us
end

algorithms['sliding_window_counter.segments'] = { params = 4, step = step_segments }
