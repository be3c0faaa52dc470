-- KEYS record, index, releases without a manifest. ARGV record, time of creation, slug, most releases, number of releases to
-- return. Returns the stored record or, when there are too many releases, the slugs of the oldest that may have no manifest.
local record = redis.call('GET', KEYS[1])
if record then return record end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then return redis.call('ZRANGE', KEYS[3], 0, ARGV[5] - 1) end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[3])
return ARGV[1]
