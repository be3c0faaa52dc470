import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import { JOB_OPTIONS, openQueue, type QueueKeys, queueKeys } from '../../shared/queue/queue.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { NewPayload } from './payload-store.ts'

/** Adds the jobs of payloads that are in Redis already. A job that exists is left alone, one that was done finds nothing. */
export function createJobAdder(redis: Redis) {
  const queues = new Map<QueueName, ReturnType<typeof openQueue>>()
  return {
    async add(name: QueueName, payloads: readonly NewPayload[]): Promise<void> {
      let queue = queues.get(name)
      if (queue === undefined) {
        queue = openQueue(redis, name)
        queue.on('error', () => {}) // the connection logs its own; without a listener BullMQ prints each to stderr
        queues.set(name, queue)
      }
      await queue.addBulk(
        payloads.map(({ jobId, frames, payload }) => ({
          name: 'commit',
          data: { payloads: frames, bytes: payload.length } satisfies CommitJob,
          opts: { ...JOB_OPTIONS, jobId },
        })),
      )
    },
    async close(): Promise<void> {
      await Promise.all([...queues.values()].map(queue => queue.close()))
    },
  }
}

export interface SweepDeps {
  readonly redis: Redis
  readonly logger: Logger
  readonly addJobs: (queue: QueueName, payloads: readonly NewPayload[]) => Promise<void>
}

/**
 * Gives every payload without a live job its job again: a worker died between moving a payload and adding its job, or
 * someone emptied the queue. Never deletes. Returns how many it found.
 */
export async function sweep(deps: SweepDeps, queue: QueueName, stopping?: AbortSignal): Promise<number> {
  const { redis, logger } = deps
  const keys = queueKeys(queue)
  let found = 0
  for await (const page of redis.scanStream({ match: `${keys.payloadPrefix}*`, count: 500 })) {
    if (stopping?.aborted) break
    const jobIds = (page as string[]).map(key => key.slice(keys.payloadPrefix.length))
    for (const jobId of await withoutJob(redis, keys, jobIds)) {
      const payload = await redis.getBuffer(keys.payload(jobId))
      if (payload === null) continue
      try {
        await deps.addJobs(queue, [{ jobId, payload, frames: decodePayload(payload).length }])
        found++
      } catch (error) {
        // One that this version cannot read must not keep the rest from their jobs.
        logger.warn({ queue, jobId, error: describeError(error) }, 'a payload could not be given a job')
      }
    }
  }
  return found
}

/** Only who takes a job from the failed set deletes it: another sweeper may have added its successor meanwhile. */
const REMOVE_FAILED = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 1 then redis.call('DEL', KEYS[2]) end
`

/** Asked page by page: in a long outage every payload of the queue is looked at in each sweep. */
async function withoutJob(redis: Redis, keys: QueueKeys, jobIds: readonly string[]): Promise<string[]> {
  const states = await Promise.all(
    jobIds.map(async jobId => {
      const [exists, failed] = await Promise.all([redis.exists(keys.job(jobId)), redis.zscore(keys.failed, jobId)])
      if (failed !== null) await redis.eval(REMOVE_FAILED, 2, keys.failed, keys.job(jobId), jobId)
      return exists === 0 || failed !== null ? jobId : undefined
    }),
  )
  return states.filter(jobId => jobId !== undefined)
}

/** Sweeps now and then, one queue after the other, until it is stopped. A pause lies between two sweeps however long they take. */
export function startSweeper(deps: SweepDeps, queues: readonly QueueName[], intervalMs: number): { stop(): void } {
  const stopping = new AbortController()
  let timer = setTimeout(sweepAll, intervalMs)

  async function sweepAll(): Promise<void> {
    for (const queue of queues) {
      try {
        const found = await sweep(deps, queue, stopping.signal)
        if (found > 0) deps.logger.warn({ queue, found }, 'payloads without a job were given one')
      } catch (error) {
        if (!stopping.signal.aborted) deps.logger.warn({ queue, error: describeError(error) }, 'sweep failed')
      }
    }
    if (!stopping.signal.aborted) timer = setTimeout(sweepAll, intervalMs)
  }

  return {
    /** Does not wait: a sweep may be cut short anywhere, and on a Redis that hangs it would take the pools' time to close. */
    stop() {
      stopping.abort()
      clearTimeout(timer)
    },
  }
}
