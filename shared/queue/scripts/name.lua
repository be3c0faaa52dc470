#!lua flags=allow-oom
-- Names a batch: for all its jobs, or for none.
-- KEYS batchOf, batches, open, then payload and lock of each job.
-- ARGV batch id, its record, then job id and lock token of each job.
-- Returns the jobs in the way, each with its reason, or nothing if all jobs are named: named (in another batch), stored, or lost
-- (another worker has read the payload since, or it is open again on a promoted replica that has it from before it was read).
local conflicts = {}
for i = 3, #ARGV, 2 do
  local named = redis.call('HGET', KEYS[1], ARGV[i])
  local reason
  if named and named ~= ARGV[1] then
    reason = 'named'
  elseif redis.call('EXISTS', KEYS[i + 1]) == 0 then
    reason = 'stored'
  elseif redis.call('GET', KEYS[i + 2]) ~= ARGV[i + 1] or redis.call('SISMEMBER', KEYS[3], ARGV[i]) == 1 then
    reason = 'lost'
  end
  if reason then
    table.insert(conflicts, ARGV[i])
    table.insert(conflicts, reason)
  end
end
if #conflicts > 0 then return conflicts end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[1]) end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return conflicts
