-- Marks a map before it is parsed. The guard is `unusable` or `tries:time of the last`.
-- KEYS guard. ARGV deadline of parsing in ms, tries, lifetime in ms. Returns 'entered', 'busy' or 'unusable'.
--- @include "../../runtime/redis/now"
local guard = redis.call('GET', KEYS[1])
if guard == 'unusable' then return 'unusable' end
local now = nowMs()
local tries = 0
if guard then
  local count, last = string.match(guard, '^(%d+):(%d+)$')
  if now - tonumber(last) < tonumber(ARGV[1]) then return 'busy' end
  tries = tonumber(count)
end
if tries >= tonumber(ARGV[2]) then return 'unusable' end
redis.call('SET', KEYS[1], string.format('%d:%.0f', tries + 1, now), 'PX', ARGV[3])
return 'entered'
