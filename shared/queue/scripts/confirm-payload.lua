#!lua flags=allow-oom
-- KEYS payload, lock, open, flow. ARGV job id, lock token.
-- Returns 1 if the payload is there as the holder of its lock has read it (name.lua). Writes a counter as it is, so that a
-- confirmation by replicas covers all that was written before.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('GET', KEYS[2]) ~= ARGV[2] or redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 1 then return 0 end
redis.call('HINCRBY', KEYS[4], 'acceptedPayloads', 0)
return 1
