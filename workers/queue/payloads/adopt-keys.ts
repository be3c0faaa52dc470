import type { Redis } from 'ioredis'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import { decodePayload, frameCost } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { errorFields } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { sharesOf } from './payload-store.ts'

/** The keys of a queue as version 0.1 named them, without hash tags. */
const oldKeys = (queue: QueueName) => ({
  payload: (jobId: string) => `penstock:queue:${queue}:payload:${jobId}`,
  payloads: `penstock:queue:${queue}:payload:*`,
  batchOf: `penstock:queue:${queue}:batch-of`,
  batches: `penstock:queue:${queue}:batches`,
  flow: `penstock:queue:${queue}:flow`,
})

/**
 * Moves the jobs of one batch, or one job that is not in a batch, all or none. KEYS old batchOf, batches and flow, then new
 * batchOf, batches, flow, pending and shares, then old and new payload of each job; ARGV batch id (empty for none), then job
 * id, arrival, frames, bytes, cost and its surfaces with their costs in JSON, for each job. Returns 0 if a worker of the old
 * version has finished or named a job meanwhile.
 */
const ADOPT = `#!lua flags=allow-oom
local record = ARGV[1] ~= '' and redis.call('HGET', KEYS[2], ARGV[1])
if ARGV[1] ~= '' and not record then return 0 end
for i = 9, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
  if ARGV[1] == '' and redis.call('HEXISTS', KEYS[1], ARGV[2 + (i - 9) / 2 * 6]) == 1 then return 0 end
end
if record then
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('HSET', KEYS[5], ARGV[1], record)
end
for i = 9, #KEYS, 2 do
  local at = 2 + (i - 9) / 2 * 6
  local jobId, arrival, frames, bytes, cost, shares = unpack(ARGV, at, at + 5)
  redis.call('RENAME', KEYS[i], KEYS[i + 1])
  redis.call('HDEL', KEYS[1], jobId)
  if record then redis.call('HSET', KEYS[4], jobId, ARGV[1]) end
  redis.call('HINCRBY', KEYS[3], 'donePayloads', frames)
  redis.call('HINCRBY', KEYS[3], 'doneBytes', bytes)
  redis.call('HINCRBY', KEYS[6], 'acceptedPayloads', frames)
  redis.call('HINCRBY', KEYS[6], 'acceptedBytes', bytes)
  redis.call('HINCRBY', KEYS[6], 'acceptedCost', cost)
  redis.call('ZADD', KEYS[7], arrival, jobId)
  for _, share in ipairs(cjson.decode(shares)) do redis.call('ZINCRBY', KEYS[8], share[2], share[1]) end
end
return 1
`

/**
 * Gives the payloads that processes of version 0.1 have left in Redis the keys of this version, so that an upgrade loses
 * nothing. The sweeper then adds their jobs. Workers of the old version may still be running: a batch that
 * one of them has named moves with all its jobs, under the same id and thus the same deduplication tokens. Returns the
 * number of payloads that were adopted.
 */
export async function adoptPayloads({ redis, logger }: { redis: Redis; logger: Logger }): Promise<number> {
  let adopted = 0
  for (const queue of QUEUES) {
    if ((await redis.exists(oldKeys(queue).flow)) === 1) adopted += await adoptQueue(redis, queue, logger)
  }
  if (adopted > 0) logger.warn({ adopted }, 'adopted payloads of an older version')
  return adopted
}

async function adoptQueue(redis: Redis, queue: QueueName, logger: Logger): Promise<number> {
  const old = oldKeys(queue)
  let adopted = 0
  let found = 0
  for await (const page of redis.scanStream({ match: old.payloads, count: 500 })) {
    found += page.length
    for (const key of page as string[]) {
      const jobId = key.slice(old.payload('').length)
      try {
        adopted += await adoptJob(redis, queue, jobId)
      } catch (error) {
        logger.warn({ queue, jobId, ...errorFields(error) }, 'could not adopt a payload of an older version')
      }
    }
  }
  // Nothing is left to look for, unless an edge of the old version writes the counters again.
  if (found === 0) await redis.del(old.flow)
  return adopted
}

/** Adopts a job, with all jobs of its batch if it is in one. Returns the number of jobs that were adopted. */
async function adoptJob(redis: Redis, queue: QueueName, jobId: string): Promise<number> {
  const [old, keys] = [oldKeys(queue), queueKeys(queue)]
  const batchId = (await redis.hget(old.batchOf, jobId)) ?? ''
  const record = batchId === '' ? null : await redis.hget(old.batches, batchId)
  if (batchId !== '' && record === null) return 0
  const jobIds = record === null ? [jobId] : (JSON.parse(record) as { jobIds: string[] }).jobIds
  const names = [old.batchOf, old.batches, old.flow, keys.batchOf, keys.batches, keys.flow, keys.pending, keys.shares]
  const args: (string | number)[] = [batchId]
  for (const id of jobIds) {
    const payload = await redis.getBuffer(old.payload(id))
    if (payload === null) return 0
    const frames = decodePayload(payload)
    const cost = frames.reduce((sum, frame) => sum + frameCost(frame), 0)
    names.push(old.payload(id), keys.payload(id))
    const shares = JSON.stringify([...sharesOf(frames)])
    args.push(id, frames[0]?.receivedAtMs ?? 0, frames.length, payload.length, cost, shares)
  }
  const done = await redis.eval(ADOPT, names.length, ...names, ...args)
  return done === 1 ? jobIds.length : 0
}

const OLD_UPLOADS = 'penstock:upload:'

/**
 * Gives the claims, declared paths and completions of uploads that version 0.1 has left in Redis the keys of this version.
 * A key that exists under its new name already is newer.
 */
export async function adoptUploads(redis: Redis): Promise<void> {
  for await (const page of redis.scanStream({ match: `${OLD_UPLOADS}*`, count: 500 })) {
    for (const key of page as string[]) {
      const [, , , kind] = key.slice(OLD_UPLOADS.length).split(':')
      const queue = kind === 'completion' || kind === 'sequence' ? 'completions' : 'source-maps'
      await redis.renamenx(key, `penstock:{${queue}.0}:upload:${key.slice(OLD_UPLOADS.length)}`)
    }
  }
}
