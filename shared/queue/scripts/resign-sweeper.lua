#!lua flags=allow-oom
-- Gives the lease of the sweeper back. KEYS lease. ARGV token.
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
