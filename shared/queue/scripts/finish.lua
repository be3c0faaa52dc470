#!lua flags=allow-oom
-- Finishes a batch, or a job that was processed without one: deletes its payloads and moves what derives from them.
--
-- KEYS batchOf, batches, flow, shares, pending, busy, then payload and joined of each job, then for each move: payload, the key
-- under which its pieces have arrived, pending, flow and shares of its queue.
-- ARGV batch id (empty for a job without a batch), number of jobs, their ids; then the counts: frames, bytes, cost, number of
-- surfaces, member and cost of each surface; then for each move: job id, bytes (empty if they have arrived in pieces), limit
-- of the backlog in bytes (0: no limit), frames, size, cost, number of surfaces, member and cost of each surface.
--
-- Returns 0 if the batch or job was finished before or a job has left the batch, 'gone' if the pieces of a move have expired,
-- else the indexes from 0 of the moves that were left out. Changes nothing in the first two cases.
local batch, jobs = ARGV[1], tonumber(ARGV[2])
local counts = 3 + jobs
local firstMove = counts + 4 + 2 * tonumber(ARGV[counts + 3])
local firstMoveKey = 7 + 2 * jobs

local function isFinished()
  if batch == '' then return redis.call('EXISTS', KEYS[7]) == 0 end
  if redis.call('HEXISTS', KEYS[2], batch) == 0 then return true end
  for i = 3, 2 + jobs do
    if redis.call('HGET', KEYS[1], ARGV[i]) ~= batch then return true end
  end
  return false
end

local function haveMovesArrived()
  local at, key = firstMove, firstMoveKey
  while at <= #ARGV do
    if ARGV[at + 1] == '' and redis.call('EXISTS', KEYS[key + 1]) == 0 then return false end
    at = at + 7 + 2 * tonumber(ARGV[at + 6])
    key = key + 5
  end
  return true
end

-- The time at which the oldest of the finished requests was accepted. The moves keep it, so that a watermark never passes a
-- request whose rows, letter or receipt are still on their way.
local oldest
local function delete(i)
  redis.call('UNLINK', KEYS[5 + 2 * i], KEYS[6 + 2 * i])
  local jobId = ARGV[2 + i]
  if batch ~= '' then redis.call('HDEL', KEYS[1], jobId) end
  local acceptedAt = tonumber(redis.call('ZSCORE', KEYS[5], jobId))
  if acceptedAt and (not oldest or acceptedAt < oldest) then oldest = acceptedAt end
  redis.call('ZREM', KEYS[5], jobId)
end

-- Gives the cost back to its surfaces. A surface without unfinished requests leaves `busy`, which would grow with every
-- surface otherwise.
local function count()
  local flow, shares, busy = KEYS[3], KEYS[4], KEYS[6]
  redis.call('HINCRBY', flow, 'donePayloads', ARGV[counts])
  redis.call('HINCRBY', flow, 'doneBytes', ARGV[counts + 1])
  redis.call('HINCRBY', flow, 'doneCost', ARGV[counts + 2])
  for i = counts + 4, firstMove - 1, 2 do
    local left = redis.call('ZINCRBY', shares, -ARGV[i + 1], ARGV[i])
    if tonumber(left) <= 0 then redis.call('HDEL', busy, ARGV[i]) end
  end
  redis.call('ZREMRANGEBYSCORE', shares, '-inf', 0)
end

-- A move is left out if the backlog and what its surfaces have of it are over the limit together, so that one surface gets at
-- most half.
local function move()
  local since = oldest or redis.call('TIME')[1] * 1000
  local leftOut = {}
  local at, key, index = firstMove, firstMoveKey, 0
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

if isFinished() then return 0 end
if not haveMovesArrived() then return 'gone' end
if batch ~= '' then redis.call('HDEL', KEYS[2], batch) end
for i = 1, jobs do delete(i) end
count()
return move()
