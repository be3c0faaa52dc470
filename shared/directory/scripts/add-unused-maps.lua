-- KEYS unused maps, stored maps. ARGV maximum, digests. A map that is unused is not known as stored any more, so that builds
-- upload it again.
--- @include "../../runtime/redis/now"
local since = nowMs()
local room = tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1])
for i = 2, #ARGV do
  if room <= 0 then return end
  room = room - redis.call('ZADD', KEYS[1], 'NX', since, ARGV[i])
  redis.call('SREM', KEYS[2], ARGV[i])
end
