#!lua flags=allow-oom
-- Replaces a job of a named batch by jobs with a part of its frames each, every one in a batch of its own.
-- KEYS batchOf, batches, flow, pending, payload, joined, then the payload of each part.
-- ARGV batch id, its record without the job (empty if it has no other), job id, bytes added, then for each part: job id,
-- batch id, record, payload.
-- Returns 0 if the job has left the batch.
if redis.call('HGET', KEYS[1], ARGV[3]) ~= ARGV[1] then return 0 end
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
if ARGV[2] == '' then redis.call('HDEL', KEYS[2], ARGV[1]) else redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) end
local acceptedAt = redis.call('ZSCORE', KEYS[4], ARGV[3]) or 0
redis.call('HDEL', KEYS[1], ARGV[3])
redis.call('UNLINK', KEYS[5], KEYS[6])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('HINCRBY', KEYS[3], 'acceptedBytes', ARGV[4])
for i = 5, #ARGV, 4 do
  redis.call('SET', KEYS[6 + (i - 1) / 4], ARGV[i + 3])
  redis.call('ZADD', KEYS[4], acceptedAt, ARGV[i])
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2])
end
return 1
