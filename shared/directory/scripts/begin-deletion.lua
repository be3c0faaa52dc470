-- Begins the deletion of those maps that have been unused for this time, and returns their positions.
-- KEYS unused maps, stored maps, then the deletion of each map. ARGV age in ms, id of the run, lifetime, then the digest of each.
--- @include "../../runtime/redis/now"
local begun = {}
local latest = nowMs() - ARGV[1]
for i = 4, #ARGV do
  local since = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if since and tonumber(since) <= latest then
    redis.call('ZREM', KEYS[1], ARGV[i])
    if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
      redis.call('SET', KEYS[i - 1], ARGV[2], 'PX', ARGV[3])
      table.insert(begun, i - 4)
    end
  end
end
return begun
