/**
 * The Lua scripts of `payload-store.ts`. Each runs atomically, and does nothing when it is sent a second time. Every key is
 * in KEYS, and the keys of one partition have the same hash tag (`queueKeys`). Redis runs them even if its memory is full
 * (`allow-oom`), because they are what frees it.
 */

/**
 * Lua that returns whether a payload is as the holder of its lock has read it: no other worker has read it since, and no request
 * has joined it. A promoted replica may have it from before it was read, when it was open.
 */
const IS_AS_READ = `
local function isAsRead(lock, token, open, jobId)
  return redis.call('GET', lock) == token and redis.call('SISMEMBER', open, jobId) == 0
end
`

/**
 * KEYS batchOf, batches, open, then payload and lock of each job; ARGV batch id, record, then job id and lock token of each
 * job. Returns the jobs in the way, each with its reason, or nothing if all jobs are named.
 */
const NAME_BATCH = `#!lua flags=allow-oom
${IS_AS_READ}
local conflicts = {}
for i = 3, #ARGV, 2 do
  local named = redis.call('HGET', KEYS[1], ARGV[i])
  local reason
  if named and named ~= ARGV[1] then
    reason = 'named'
  elseif redis.call('EXISTS', KEYS[i + 1]) == 0 then
    reason = 'stored'
  elseif not isAsRead(KEYS[i + 2], ARGV[i + 1], KEYS[3], ARGV[i]) then
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
`

/**
 * KEYS payload, lock, open, flow; ARGV job id, lock token. Returns 1 if the payload is there as it was read. Writes a counter as it
 * is, so that a confirmation by replicas covers all that was written before.
 */
const CONFIRM_PAYLOAD = `#!lua flags=allow-oom
${IS_AS_READ}
if redis.call('EXISTS', KEYS[1]) == 0 or not isAsRead(KEYS[2], ARGV[2], KEYS[3], ARGV[1]) then return 0 end
redis.call('HINCRBY', KEYS[4], 'acceptedPayloads', 0)
return 1
`

/**
 * KEYS batches; ARGV batch id. Returns the record of the batch, and writes it once more, so that a confirmation by replicas
 * covers it.
 */
const READ_BATCH = `#!lua flags=allow-oom
local record = redis.call('HGET', KEYS[1], ARGV[1])
if record then redis.call('HSET', KEYS[1], ARGV[1], record) end
return record
`

/**
 * KEYS batches; ARGV batch id, record. Replaces the record of a batch that was named without a formation. Returns the record
 * that is there afterwards, or nothing if the batch is finished or split.
 */
const DESCRIBE_BATCH = `#!lua flags=allow-oom
local known = redis.call('HGET', KEYS[1], ARGV[1])
if not known then return known end
if not cjson.decode(known).formed then known = ARGV[2] end
redis.call('HSET', KEYS[1], ARGV[1], known)
return known
`

/**
 * Counts finished requests, and gives their cost back to their surfaces. A surface without unfinished requests leaves `busy`,
 * which would grow with every surface otherwise. The arguments are frames, bytes, cost, number of surfaces, then member and
 * cost of each surface. Returns the index after them.
 */
const SETTLE = `
-- The time at which the oldest of the finished requests was accepted. The moves keep it, so that a watermark never passes a
-- request whose rows, letter or receipt are still on their way.
local oldest
local function leave(pending, jobId)
  local acceptedAt = tonumber(redis.call('ZSCORE', pending, jobId))
  if acceptedAt and (not oldest or acceptedAt < oldest) then oldest = acceptedAt end
  redis.call('ZREM', pending, jobId)
end
local function settle(flow, shares, busy, at)
  redis.call('HINCRBY', flow, 'donePayloads', ARGV[at])
  redis.call('HINCRBY', flow, 'doneBytes', ARGV[at + 1])
  redis.call('HINCRBY', flow, 'doneCost', ARGV[at + 2])
  local after = at + 4 + 2 * tonumber(ARGV[at + 3])
  for i = at + 4, after - 1, 2 do
    local left = redis.call('ZINCRBY', shares, -ARGV[i + 1], ARGV[i])
    if tonumber(left) <= 0 then redis.call('HDEL', busy, ARGV[i]) end
  end
  redis.call('ZREMRANGEBYSCORE', shares, '-inf', 0)
  return after
end
`

/**
 * Stores payloads for other queues. The keys of each are its payload, the key under which its pieces have arrived, then
 * pending, flow and shares of its queue. The arguments of each are its job id, its bytes (empty if they have arrived in
 * pieces), the limit of the backlog in bytes (0: no limit), its frames, size and cost, the number of its surfaces, then member
 * and cost of each surface. It is left out if the backlog and what its surfaces have of it are over the limit together, so
 * that one surface gets at most half. Returns the indexes of what was left out, from 0.
 */
const MOVE_FROM = `
local function moveFrom(key, at)
  local since = oldest or redis.call('TIME')[1] * 1000
  local leftOut = {}
  local index = 0
  while at <= #ARGV do
    local payload, arriving, pending, flow, shares = unpack(KEYS, key, key + 4)
    local limit = tonumber(ARGV[at + 2])
    local after = at + 7 + 2 * tonumber(ARGV[at + 6])
    local behind = -1
    if limit > 0 then
      behind = tonumber(redis.call('HGET', flow, 'acceptedBytes') or 0) - tonumber(redis.call('HGET', flow, 'doneBytes') or 0)
      for i = at + 7, after - 1, 2 do behind = behind + tonumber(redis.call('ZSCORE', shares, ARGV[i]) or 0) end
    end
    if behind < limit then
      if ARGV[at + 1] == '' then
        redis.call('RENAME', arriving, payload)
        redis.call('PERSIST', payload)
      else
        redis.call('SET', payload, ARGV[at + 1])
      end
      redis.call('ZADD', pending, since, ARGV[at])
      redis.call('HINCRBY', flow, 'acceptedPayloads', ARGV[at + 3])
      redis.call('HINCRBY', flow, 'acceptedBytes', ARGV[at + 4])
      redis.call('HINCRBY', flow, 'acceptedCost', ARGV[at + 5])
      for i = at + 7, after - 1, 2 do redis.call('ZINCRBY', shares, ARGV[i + 1], ARGV[i]) end
    else
      table.insert(leftOut, index)
    end
    at = after
    key = key + 5
    index = index + 1
  end
  return leftOut
end
local function haveArrived(key, at)
  while at <= #ARGV do
    if ARGV[at + 1] == '' and redis.call('EXISTS', KEYS[key + 1]) == 0 then return false end
    at = at + 7 + 2 * tonumber(ARGV[at + 6])
    key = key + 5
  end
  return true
end
`

/** What a finishing script returns if the pieces of a move have expired. Nothing was changed then. */
export const PIECES_ARE_GONE = -1

/**
 * KEYS batchOf, batches, flow, shares, pending, busy, payload and joined frames of each job, then the keys of the moves; ARGV
 * batch id, number of jobs, their ids, then the counts (SETTLE) and the moves (MOVE_FROM). Returns 0 if the batch was finished
 * before or a job has left it, else the indexes of the moves that were left out.
 */
const FINISH_BATCH = `#!lua flags=allow-oom
${SETTLE}${MOVE_FROM}
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
local jobs = tonumber(ARGV[2])
for i = 3, 2 + jobs do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[1] then return 0 end
end
local counts = 3 + jobs
local moves = counts + 4 + 2 * tonumber(ARGV[counts + 3])
if not haveArrived(7 + 2 * jobs, moves) then return ${PIECES_ARE_GONE} end
redis.call('HDEL', KEYS[2], ARGV[1])
for i = 1, jobs do
  redis.call('UNLINK', KEYS[5 + 2 * i], KEYS[6 + 2 * i])
  redis.call('HDEL', KEYS[1], ARGV[2 + i])
  leave(KEYS[5], ARGV[2 + i])
end
settle(KEYS[3], KEYS[4], KEYS[6], counts)
return moveFrom(7 + 2 * jobs, moves)
`

/**
 * KEYS payload, joined, flow, shares, pending, busy, then the keys of the moves; ARGV job id, then the counts (SETTLE) and the
 * moves (MOVE_FROM). Returns as FINISH_BATCH does.
 */
const FINISH_JOB = `#!lua flags=allow-oom
${SETTLE}${MOVE_FROM}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local moves = 2 + 4 + 2 * tonumber(ARGV[5])
if not haveArrived(7, moves) then return ${PIECES_ARE_GONE} end
redis.call('UNLINK', KEYS[1], KEYS[2])
leave(KEYS[5], ARGV[1])
settle(KEYS[3], KEYS[4], KEYS[6], 2)
return moveFrom(7, moves)
`

/** KEYS batchOf, batches; ARGV batch id, then for each half: batch id, record, number of jobs, job ids. */
const SPLIT_BATCH = `#!lua flags=allow-oom
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
local i = 2
while i <= #ARGV do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  local jobs = tonumber(ARGV[i + 2])
  for j = i + 3, i + 2 + jobs do redis.call('HSET', KEYS[1], ARGV[j], ARGV[i]) end
  i = i + 3 + jobs
end
return 1
`

/**
 * KEYS batchOf, batches, flow, pending, payload, joined, then the payload of each part; ARGV batch id, its record without the
 * job (empty if it has no other), job id, bytes added, then for each part: job id, batch id, record, payload.
 */
const SPLIT_JOB = `#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], ARGV[3]) ~= ARGV[1] then return 0 end
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
if ARGV[2] == '' then redis.call('HDEL', KEYS[2], ARGV[1]) else redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) end
local arrival = redis.call('ZSCORE', KEYS[4], ARGV[3]) or 0
redis.call('HDEL', KEYS[1], ARGV[3])
redis.call('UNLINK', KEYS[5], KEYS[6])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('HINCRBY', KEYS[3], 'acceptedBytes', ARGV[4])
for i = 5, #ARGV, 4 do
  redis.call('SET', KEYS[6 + (i - 1) / 4], ARGV[i + 3])
  redis.call('ZADD', KEYS[4], arrival, ARGV[i])
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i + 2])
end
return 1
`

/** The scripts of a payload store, by the names under which its connection knows them. */
export const PAYLOAD_SCRIPTS = {
  penstockNameBatch: NAME_BATCH,
  penstockConfirmPayload: CONFIRM_PAYLOAD,
  penstockReadBatch: READ_BATCH,
  penstockDescribeBatch: DESCRIBE_BATCH,
  penstockFinishBatch: FINISH_BATCH,
  penstockFinishJob: FINISH_JOB,
  penstockSplitBatch: SPLIT_BATCH,
  penstockSplitJob: SPLIT_JOB,
}
/** Name of one of them. */
export type ScriptName = keyof typeof PAYLOAD_SCRIPTS

/** An argument of a script. */
export type ScriptArgument = string | number | Buffer
