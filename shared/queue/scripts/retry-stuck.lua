#!lua flags=allow-oom
-- Gives a job that a worker has taken, and lost with its lock, to the next worker, as BullMQ's own check of stalled jobs does.
-- KEYS lock, active, wait, job, settings and marker of its lane. ARGV job id.
-- Returns 0 if the job has a lock or is not active.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if redis.call('LREM', KEYS[2], 1, ARGV[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[4], 'stc', 1)
redis.call('RPUSH', KEYS[3], ARGV[1])
if redis.call('HEXISTS', KEYS[5], 'paused') == 0 then redis.call('ZADD', KEYS[6], 0, '0') end
return 1
