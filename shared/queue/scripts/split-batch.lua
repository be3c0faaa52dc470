#!lua flags=allow-oom
-- Replaces a named batch by others with the same jobs.
-- KEYS batchOf, batches. ARGV batch id, then for each half: batch id, record, number of jobs, job ids.
-- Returns 0 if the batch was finished or split before.
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
local i = 2
while i <= #ARGV do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  local jobs = tonumber(ARGV[i + 2])
  for j = i + 3, i + 2 + jobs do redis.call('HSET', KEYS[1], ARGV[j], ARGV[i]) end
  i = i + 3 + jobs
end
return 1
