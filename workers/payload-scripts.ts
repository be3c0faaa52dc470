/** The Lua of `payload-store.ts`. Each runs as one step of Redis, and does nothing when it is sent a second time. */

/**
 * KEYS batchOf, batches; ARGV payload prefix, BullMQ prefix, batch id, record, then (job id, lock token) per job.
 * Answers the jobs in the way with their reason, or nothing once all are named.
 */
export const NAME_BATCH = {
  numberOfKeys: 2,
  lua: `
local conflicts = {}
for i = 5, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  local named = redis.call('HGET', KEYS[1], id)
  if named and named ~= ARGV[3] then
    table.insert(conflicts, id)
    table.insert(conflicts, 'named')
  elseif redis.call('EXISTS', ARGV[1] .. id) == 0 then
    table.insert(conflicts, id)
    table.insert(conflicts, 'stored')
  elseif redis.call('GET', ARGV[2] .. id .. ':lock') ~= token then
    table.insert(conflicts, id)
    table.insert(conflicts, 'lost')
  end
end
if #conflicts > 0 then return conflicts end
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[3]) end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return conflicts
`,
}

/**
 * KEYS batchOf, batches, flow, flow of the dead letters; ARGV payload prefix, batch id, frames and bytes done,
 * payload key, payload, frames and bytes of what was refused, then the job ids.
 */
export const FINISH_BATCH = {
  numberOfKeys: 4,
  lua: `
if redis.call('HDEL', KEYS[2], ARGV[2]) == 0 then return 0 end
for i = 9, #ARGV do
  redis.call('UNLINK', ARGV[1] .. ARGV[i])
  redis.call('HDEL', KEYS[1], ARGV[i])
end
redis.call('HINCRBY', KEYS[3], 'donePayloads', ARGV[3])
redis.call('HINCRBY', KEYS[3], 'doneBytes', ARGV[4])
if ARGV[5] ~= '' then
  redis.call('SET', ARGV[5], ARGV[6])
  redis.call('HINCRBY', KEYS[4], 'acceptedPayloads', ARGV[7])
  redis.call('HINCRBY', KEYS[4], 'acceptedBytes', ARGV[8])
end
return 1
`,
}

/** KEYS payload, flow; ARGV frames and bytes done, then per payload that comes of it: key, payload, flow, frames and bytes. */
export const FINISH_JOB = {
  numberOfKeys: 2,
  lua: `
if redis.call('UNLINK', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[2], 'donePayloads', ARGV[1])
redis.call('HINCRBY', KEYS[2], 'doneBytes', ARGV[2])
for i = 3, #ARGV, 5 do
  redis.call('SET', ARGV[i], ARGV[i + 1])
  redis.call('HINCRBY', ARGV[i + 2], 'acceptedPayloads', ARGV[i + 3])
  redis.call('HINCRBY', ARGV[i + 2], 'acceptedBytes', ARGV[i + 4])
end
return 1
`,
}

/** KEYS batchOf, batches; ARGV batch id, then per half: batch id, record, number of jobs, job ids. */
export const SPLIT_BATCH = {
  numberOfKeys: 2,
  lua: `
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
local i = 2
while i <= #ARGV do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  local jobs = tonumber(ARGV[i + 2])
  for j = i + 3, i + 2 + jobs do redis.call('HSET', KEYS[1], ARGV[j], ARGV[i]) end
  i = i + 3 + jobs
end
return 1
`,
}

/** KEYS batchOf, batches, flow; ARGV payload prefix, batch id, job id, bytes added, then per part: job id, batch id, record, payload. */
export const SPLIT_JOB = {
  numberOfKeys: 3,
  lua: `
if redis.call('HDEL', KEYS[2], ARGV[2]) == 0 then return 0 end
redis.call('HDEL', KEYS[1], ARGV[3])
redis.call('UNLINK', ARGV[1] .. ARGV[3])
redis.call('HINCRBY', KEYS[3], 'acceptedBytes', ARGV[4])
for i = 5, #ARGV, 4 do
  redis.call('SET', ARGV[1] .. ARGV[i], ARGV[i + 3])
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2])
end
return 1
`,
}
