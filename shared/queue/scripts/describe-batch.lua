#!lua flags=allow-oom
-- KEYS batches. ARGV batch id, then a record with a formation, or nothing to read the record that is there.
-- Replaces a record without a formation. Returns the record that is there afterwards, or nothing if the batch is finished or
-- split. Writes it in any case, so that a confirmation by replicas covers it.
local record = redis.call('HGET', KEYS[1], ARGV[1])
if not record then return record end
if ARGV[2] and not cjson.decode(record).formed then record = ARGV[2] end
redis.call('HSET', KEYS[1], ARGV[1], record)
return record
