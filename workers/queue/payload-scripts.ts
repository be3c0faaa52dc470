/** The Lua scripts of `payload-store.ts`. Each runs atomically, and does nothing when it is sent a second time. */

/**
 * KEYS batchOf, batches; ARGV payload prefix, BullMQ prefix, batch id, record, then (job id, lock token) per job.
 * Returns the jobs in the way, each with its reason, or nothing if all jobs are named.
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
 * Stores payloads for other queues. The arguments of each are its key, its bytes, the flow of its queue, its frames, its
 * size, and the backlog in bytes from which the payload is left out (0: no limit).
 */
const MOVE_FROM = `
local function moveFrom(first)
  for i = first, #ARGV, 6 do
    local flow, limit = ARGV[i + 2], tonumber(ARGV[i + 5])
    local behind = limit == 0 and -1
      or tonumber(redis.call('HGET', flow, 'acceptedBytes') or 0) - tonumber(redis.call('HGET', flow, 'doneBytes') or 0)
    if behind < limit then
      redis.call('SET', ARGV[i], ARGV[i + 1])
      redis.call('HINCRBY', flow, 'acceptedPayloads', ARGV[i + 3])
      redis.call('HINCRBY', flow, 'acceptedBytes', ARGV[i + 4])
    end
  end
end
`

/**
 * KEYS batchOf, batches, flow; ARGV payload prefix, batch id, frames and bytes done, number of jobs, their ids, then the
 * moves (MOVE_FROM).
 */
export const FINISH_BATCH = {
  numberOfKeys: 3,
  lua: `
${MOVE_FROM}
if redis.call('HDEL', KEYS[2], ARGV[2]) == 0 then return 0 end
local lastJob = 5 + tonumber(ARGV[5])
for i = 6, lastJob do
  redis.call('UNLINK', ARGV[1] .. ARGV[i])
  redis.call('HDEL', KEYS[1], ARGV[i])
end
redis.call('HINCRBY', KEYS[3], 'donePayloads', ARGV[3])
redis.call('HINCRBY', KEYS[3], 'doneBytes', ARGV[4])
moveFrom(lastJob + 1)
return 1
`,
}

/** KEYS payload, flow; ARGV frames and bytes done, then the moves (MOVE_FROM). */
export const FINISH_JOB = {
  numberOfKeys: 2,
  lua: `
${MOVE_FROM}
if redis.call('UNLINK', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[2], 'donePayloads', ARGV[1])
redis.call('HINCRBY', KEYS[2], 'doneBytes', ARGV[2])
moveFrom(3)
return 1
`,
}

/** KEYS batchOf, batches; ARGV batch id, then for each half: batch id, record, number of jobs, job ids. */
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

/** KEYS batchOf, batches, flow; ARGV payload prefix, batch id, job id, bytes added, then for each part: job id, batch id, record, payload. */
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
