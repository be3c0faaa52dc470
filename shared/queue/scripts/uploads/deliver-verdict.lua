-- Publishes the verdict on a request, and updates the record of a completion in the same step.
-- KEYS verdict, then nothing, or record of the completion, recorded digests, sums of the budget and last sequence. ARGV attempt,
-- verdict, its lifetime, channel, then digest, name of the release in the budget, and the new record, or no record to delete it.
-- The record of another attempt is left alone. While another completion of the release waits, nothing else expires. The last
-- sequence outlives every record that was given one.
--- @include "uploads/budget"
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
if KEYS[2] then
  local record = redis.call('GET', KEYS[2])
  if record and cjson.decode(record).attempt == ARGV[1] then
    if ARGV[7] then
      redis.call('SET', KEYS[2], ARGV[7], 'EX', UPLOAD_LIFETIME_S)
      redis.call('ZADD', KEYS[3], 'XX', redis.call('TIME')[1] + UPLOAD_LIFETIME_S, ARGV[5])
    else
      redis.call('DEL', KEYS[2])
      if redis.call('ZREM', KEYS[3], ARGV[5]) == 1 then lift(KEYS[4], ARGV[6], RECORD_BYTES + #KEYS[2]) end
    end
    if redis.call('ZCOUNT', KEYS[3], '+inf', '+inf') == 0 then
      redis.call('EXPIRE', KEYS[3], UPLOAD_LIFETIME_S)
      redis.call('EXPIRE', KEYS[5], 2 * UPLOAD_LIFETIME_S)
    end
  end
end
redis.call('PUBLISH', ARGV[4], ARGV[1])
