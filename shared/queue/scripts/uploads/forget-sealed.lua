-- Removes the claims of a path if they are sealed as the caller has read. Returns whether they were.
-- KEYS parts of the path, sealed paths, bytes of sealed claims. ARGV name of the release in the budget, `sealed` as it was read.
--- @include "uploads/part-claims"
if redis.call('HGET', KEYS[1], 'sealed') ~= ARGV[2] then return 0 end
local count = assembledOf(KEYS[1])
redis.call('DEL', KEYS[1])
if redis.call('SREM', KEYS[2], pathOf(KEYS[1])) == 1 then lift(KEYS[3], ARGV[1], claimsBytes(KEYS[1], count)) end
return 1
