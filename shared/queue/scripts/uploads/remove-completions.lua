#!lua flags=allow-oom
-- Removes a page of the records of completions of a release. Returns whether nothing is left.
-- KEYS recorded digests, sequence, the budget of the workspace (sums, ends), then the record of each digest. ARGV name of the
-- release in the budget, then the digests.
--- @include "uploads/budget"
for i = 5, #KEYS do
  redis.call('UNLINK', KEYS[i])
  redis.call('ZREM', KEYS[1], ARGV[i - 3])
end
if redis.call('EXISTS', KEYS[1]) > 0 then return 0 end
redis.call('UNLINK', KEYS[2])
lift(KEYS[3], ARGV[1], math.huge)
redis.call('ZREM', KEYS[4], ARGV[1])
return 1
