import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import { JOB_OPTIONS, openQueue, type QueueKeys, queueKeys } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { NewPayload } from './payload-store.ts'
import type { AddJobs } from './process-frames.ts'

/** Creates an adder of jobs for payloads that are already in Redis. Jobs that exist are left alone. */
export function createJobAdder(redis: Redis) {
  const queues = new Map<QueueName, ReturnType<typeof openQueue>>()
  return {
    async add(name: QueueName, payloads: readonly NewPayload[]): Promise<void> {
      let queue = queues.get(name)
      if (queue === undefined) {
        queue = openQueue(redis, name)
        // The connection logs its own errors. Without a listener, BullMQ prints each of them to stderr.
        queue.on('error', () => {})
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

/** Dependencies of a sweep. */
export interface SweepDeps {
  readonly redis: Redis
  readonly logger: Logger
  readonly addJobs: AddJobs
}

/**
 * Adds the job of every payload that has no live job, because a worker died between moving the payload and adding its job,
 * or because someone emptied the queue. Never deletes a payload. Returns the number of jobs it added.
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
        // A payload that this version cannot read must not block the others.
        logger.warn({ queue, jobId, ...errorFields(error) }, 'could not add the job of a payload')
      }
    }
  }
  return found
}

/** Deletes a job only after removing it from the failed set, since another sweeper may have added its successor meanwhile. */
const REMOVE_FAILED = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 1 then redis.call('DEL', KEYS[2]) end
`

/** Returns the ids without a live job. Runs per page, because in a long outage a sweep looks at every payload of the queue. */
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

/** Sweeps the queues one after the other, with a pause of `intervalMs` after each sweep, until it is stopped. */
export function startSweeper(deps: SweepDeps, queues: readonly QueueName[], intervalMs: number): { stop(): void } {
  const stopping = new AbortController()
  let timer = setTimeout(sweepAll, intervalMs)

  async function sweepAll(): Promise<void> {
    for (const queue of queues) {
      try {
        const found = await sweep(deps, queue, stopping.signal)
        if (found > 0) deps.logger.warn({ queue, found }, 'added the jobs of payloads without one')
      } catch (error) {
        if (!stopping.signal.aborted) deps.logger.warn({ queue, ...errorFields(error) }, 'sweep failed')
      }
    }
    if (!stopping.signal.aborted) timer = setTimeout(sweepAll, intervalMs)
  }

  return {
    /** Does not wait. A sweep may be interrupted anywhere, and with a hanging Redis it would use up the deadline of the pools. */
    stop() {
      stopping.abort()
      clearTimeout(timer)
    },
  }
}
