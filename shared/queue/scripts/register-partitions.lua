#!lua flags=allow-oom
-- KEYS partitions. ARGV lifetime in ms, first partition, their number.
-- Returns the time, then the registered partitions and their values.
--- @include "../../runtime/redis/now"
local now = nowMs()
local first = tonumber(ARGV[2])
for partition = first, first + tonumber(ARGV[3]) - 1 do
  local since, before = now, 0
  local known = redis.call('HGET', KEYS[1], partition)
  if known then since, before = string.match(known, '^(%d+) (%d+)$') end
  local untilMs = math.max(now + tonumber(ARGV[1]), tonumber(before))
  redis.call('HSET', KEYS[1], partition, string.format('%.0f %.0f', since, untilMs))
end
return {now, redis.call('HGETALL', KEYS[1])}
