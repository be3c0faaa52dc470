#!lua flags=allow-oom
-- Takes the lease of the sweeper, or renews it if it is the caller's. KEYS lease. ARGV token, lifetime in ms.
-- Returns 0, or how long the lease of another process lasts.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return math.max(1, redis.call('PTTL', KEYS[1])) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
