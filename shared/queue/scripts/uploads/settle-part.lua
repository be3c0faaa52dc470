-- Ends the wait of a claimed part: its object is stored, or it cannot be stored and its number is free again. When no part of the
-- path waits, its claims expire unless a manifest keeps them.
-- KEYS parts, paths with claims. ARGV part, claim, then the size of a part that cannot be stored, or nothing.
-- Returns 0 if the claim was replaced or removed with its release, or a part whose number is to be free is stored.
--- @include "uploads/part-claims"
local parts, part = KEYS[1], ARGV[1]
if redis.call('HGET', parts, part) ~= ARGV[2] then return 0 end
if not ARGV[3] then redis.call('HSET', parts, 'stored:' .. part, redis.call('TIME')[1]) end
if redis.call('HDEL', parts, 'waits:' .. part) == 1 and redis.call('HINCRBY', parts, 'waiting', -1) <= 0 then
  redis.call('HDEL', parts, 'waiting')
  if redis.call('HEXISTS', parts, 'sealed') == 0 then expireClaims(parts, KEYS[2]) end
end
if ARGV[3] then
  if redis.call('HEXISTS', parts, 'stored:' .. part) == 1 then return 0 end
  redis.call('HDEL', parts, part)
  redis.call('HINCRBY', parts, 'bytes', -ARGV[3])
end
return 1
