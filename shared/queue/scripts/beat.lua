-- Shows that a process of the workers runs. KEYS heartbeats, loads. ARGV name of the process, lifetime in ms, load.
--- @include "../../runtime/redis/now"
local now = nowMs()
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)
for _, name in ipairs(ended) do redis.call('HDEL', KEYS[2], name) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
