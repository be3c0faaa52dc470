-- KEYS lease. ARGV holder, lifetime in ms. Returns whether the holder still has the lease.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
