#!lua flags=allow-oom
-- Writes a payload that a finish will move, while Redis is full too: the finish makes room. It expires if no finish comes.
-- KEYS arriving. ARGV payload, expiry in seconds.
return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
