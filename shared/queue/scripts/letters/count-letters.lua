#!lua flags=allow-oom
-- Counts the refused requests of a job as dead letters, once for each decision.
-- KEYS the decision of the job, then a counter for each surface and day, then one for each workspace and day.
-- ARGV lifetime of the decision, lifetime of the counters, most bytes, most letters, how many times as much a workspace may
-- have, the number of surfaces, then bytes, letters and the counter of the workspace for each surface.
-- Returns bytes and letters of each counter before the job. The decision is only stored if something is left of a bound,
-- because otherwise it repeats by itself: a flood leaves nothing in Redis but its counters.
local known = redis.call('GET', KEYS[1])
if known then return known end
local maxBytes, maxLetters = tonumber(ARGV[3]), tonumber(ARGV[4])
local lastSurface = 1 + tonumber(ARGV[6])
local used = {}
local kept = {}
local isOpen = false
local function count(key, bytes, letters)
  local bytesBefore = redis.call('HINCRBY', key, 'bytes', string.format('%.0f', bytes)) - bytes
  local lettersBefore = redis.call('HINCRBY', key, 'letters', string.format('%.0f', letters)) - letters
  redis.call('EXPIRE', key, ARGV[2])
  table.insert(used, string.format('%.0f %.0f', bytesBefore, lettersBefore))
  return bytesBefore, lettersBefore
end
for i = 2, lastSurface do
  local bytes, letters = tonumber(ARGV[3 * i + 1]), tonumber(ARGV[3 * i + 2])
  local bytesBefore, lettersBefore = count(KEYS[i], bytes, letters)
  if bytesBefore < maxBytes and lettersBefore < maxLetters then
    local sum = kept[ARGV[3 * i + 3]] or { 0, 0 }
    sum[1] = sum[1] + math.min(bytes, maxBytes - bytesBefore)
    sum[2] = sum[2] + math.min(letters, maxLetters - lettersBefore)
    kept[ARGV[3 * i + 3]] = sum
  end
end
for i = lastSurface + 1, #KEYS do
  local sum = kept[tostring(i - lastSurface)]
  local bytesBefore, lettersBefore = count(KEYS[i], sum and sum[1] or 0, sum and sum[2] or 0)
  if sum and bytesBefore < maxBytes * ARGV[5] and lettersBefore < maxLetters * ARGV[5] then isOpen = true end
end
local reply = table.concat(used, ' ')
if isOpen then redis.call('SET', KEYS[1], reply, 'EX', ARGV[1]) end
return reply
