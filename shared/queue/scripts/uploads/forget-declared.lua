-- Forgets staged maps and declared paths of maps that a manifest names. A map that was forgotten before does not count again.
-- KEYS staged maps, their bytes, declared maps, sums of the budget. ARGV name of the release in the budget, number of staged
-- maps, their members, then path and record of declared maps in turn, unless the record has changed.
--- @include "uploads/budget"
local firstPath = 3 + ARGV[2]
for i = 3, firstPath - 1 do
  if redis.call('ZREM', KEYS[1], ARGV[i]) == 1 then redis.call('DECRBY', KEYS[2], string.match(ARGV[i], '^%d+')) end
end
local lifted = 0
for i = firstPath, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[3], ARGV[i])
    lifted = lifted + declaredBytes(ARGV[i], #ARGV[i + 1])
  end
end
if lifted > 0 and redis.call('EXISTS', KEYS[3]) == 0 then lifted = lifted + HASH_BYTES end
if lifted > 0 then lift(KEYS[4], ARGV[1], lifted) end
