#!lua flags=allow-oom
-- Removes a page of what the uploads of a release left in Redis, but for completions. Returns whether nothing is left.
-- KEYS paths with claims, sealed paths, declared maps, single uploads, the budget of the workspace (sums, ends, sealed), then the
-- parts of each path. ARGV name of the release in the budget, then the paths.
--- @include "uploads/budget"
for i = 8, #KEYS do
  redis.call('UNLINK', KEYS[i])
  redis.call('SREM', KEYS[1], ARGV[i - 6])
  redis.call('SREM', KEYS[2], ARGV[i - 6])
end
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 0 end
redis.call('UNLINK', KEYS[3], KEYS[4])
lift(KEYS[5], ARGV[1], math.huge)
redis.call('ZREM', KEYS[6], ARGV[1])
lift(KEYS[7], ARGV[1], math.huge)
return 1
