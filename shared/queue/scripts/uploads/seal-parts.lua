-- Keeps the claims of the parts of these maps for as long as a manifest names the maps. Returns the number of parts of each.
-- KEYS paths with claims, sealed paths, bytes of claims that expire, bytes of sealed claims, then parts of each path. ARGV name
-- of the release in the budget, sequence, then the SHA-256 that the manifest names for each path.
--- @include "uploads/part-claims"
local counts = {}
local kept = 0
for i = 1, #KEYS - 4 do
  local parts = KEYS[i + 4]
  local count, sha256 = assembledOf(parts)
  counts[i] = 0
  if sha256 == ARGV[i + 2] then
    local sealed = redis.call('HGET', parts, 'sealed')
    if not sealed or tonumber(sealed) < tonumber(ARGV[2]) then redis.call('HSET', parts, 'sealed', ARGV[2]) end
    redis.call('PERSIST', parts)
    redis.call('SREM', KEYS[1], pathOf(parts))
    if redis.call('SADD', KEYS[2], pathOf(parts)) == 1 then kept = kept + claimsBytes(parts, count) end
    counts[i] = count
  end
end
if kept > 0 then
  lift(KEYS[3], ARGV[1], kept)
  redis.call('HINCRBY', KEYS[4], ARGV[1], kept)
  redis.call('HINCRBY', KEYS[4], 'total', kept)
end
return counts
