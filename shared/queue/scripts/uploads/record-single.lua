-- Records the last single upload of a path, until 24 h after that of the release. Returns 0, and records nothing, if the uploads
-- of the workspace would take too much memory.
-- KEYS single uploads of the release, then the budget of the workspace (sums, ends, sealed). ARGV path, map, name of the release
-- in the budget.
--- @include "uploads/budget"
local memory = redis.call('EXISTS', KEYS[1]) == 0 and HASH_BYTES or 0
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then memory = memory + ENTRY_BYTES + #ARGV[1] + #ARGV[2] end
if not chargeUpload(KEYS[2], KEYS[3], KEYS[4], ARGV[3], memory) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], UPLOAD_LIFETIME_S)
return 1
