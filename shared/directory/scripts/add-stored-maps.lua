-- KEYS stored maps, unused maps. ARGV maximum, digests.
redis.call('SADD', KEYS[1], unpack(ARGV, 2))
redis.call('ZREM', KEYS[2], unpack(ARGV, 2))
local over = redis.call('SCARD', KEYS[1]) - ARGV[1]
if over > 0 then redis.call('SPOP', KEYS[1], over) end
