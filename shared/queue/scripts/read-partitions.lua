#!lua flags=no-writes
-- KEYS partitions. Returns the time, then the registered partitions and their values.
--- @include "../../runtime/redis/now"
return {nowMs(), redis.call('HGETALL', KEYS[1])}
