-- Lets the claims of these paths expire, unless a later completion has sealed them again.
-- KEYS paths with claims, sealed paths, the budget of the workspace (sums, ends, sealed), then parts of each path. ARGV name of
-- the release in the budget, sequence.
--- @include "uploads/part-claims"
local freed = 0
for i = 6, #KEYS do
  local parts = KEYS[i]
  local sealed = redis.call('HGET', parts, 'sealed')
  if sealed and tonumber(sealed) <= tonumber(ARGV[2]) then
    redis.call('HDEL', parts, 'sealed')
    expireClaims(parts, KEYS[1])
    if redis.call('SREM', KEYS[2], pathOf(parts)) == 1 then
      local count = assembledOf(parts)
      freed = freed + claimsBytes(parts, count)
    end
  end
end
if freed > 0 then
  lift(KEYS[5], ARGV[1], freed)
  add(KEYS[3], KEYS[4], ARGV[1], freed)
end
