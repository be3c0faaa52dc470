#!lua flags=allow-oom
-- KEYS unused maps, deletion of the map. ARGV digest. Returns whether the map may be used.
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
