-- KEYS pointer, record, releases without a manifest. ARGV pointer, sequence, slug. Returns whether the new pointer is current, and
-- the previous one.
local before = redis.call('GET', KEYS[1])
if before and cjson.decode(before).sequence > tonumber(ARGV[2]) then return {0, before} end
if redis.call('EXISTS', KEYS[2]) == 0 then return {0, before} end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[3])
return {1, before}
