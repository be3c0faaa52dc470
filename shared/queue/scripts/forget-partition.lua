#!lua flags=allow-oom
-- KEYS partitions. ARGV partition, value. Returns whether it was removed, because no edge has registered it again.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
