import type { Redis } from 'ioredis'
import type { CommitJob } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import { JOB_OPTIONS, type Lane, lanesOf, openQueue, type QueueKeys, queueKeys } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { adoptPayloads, adoptUploads } from './payloads/adopt-keys.ts'
import type { NewPayload } from './payloads/payload-store.ts'
import type { AddJobs } from './process-frames.ts'

/** Creates an adder of jobs for payloads that are already in Redis. Jobs that exist are left alone. */
export function createJobAdder(redis: Redis) {
  const queues = new Map<QueueName, ReturnType<typeof openQueue>>()
  return {
    /** Adds the jobs to the last lane of their queue: the payloads are late, or were too large to be decoded at once. */
    async add(name: QueueName, payloads: readonly NewPayload[]): Promise<void> {
      let queue = queues.get(name)
      if (queue === undefined) {
        queue = openQueue(redis, name, lanesOf(name).at(-1) ?? 'express')
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
  readonly now?: () => number
}

/** Payloads that are younger than this are left alone: their jobs may be on the way. */
const MIN_AGE_MS = 5_000
const PAGE = 500

/**
 * Adds the job of every payload that has no live job, because an edge or a worker died between writing the payload and
 * adding its job, or because someone emptied the queue. Never deletes a payload. Returns the number of jobs it added.
 */
export async function sweep(deps: SweepDeps, queue: QueueName, stopping?: AbortSignal): Promise<number> {
  const { redis, logger, now = Date.now } = deps
  const keys = queueKeys(queue)
  const lanes = lanesOf(queue)
  let found = 0
  for await (const page of redis.zscanStream(keys.pending, { count: PAGE })) {
    if (stopping?.aborted) break
    for (const jobId of await withoutJob(redis, keys, lanes, oldEnough(page as string[], now() - MIN_AGE_MS))) {
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

/** Returns the members of a page of ZSCAN, which alternates members and scores, whose score is at most `limit`. */
function oldEnough(page: readonly string[], limit: number): string[] {
  return page.filter((_, i) => i % 2 === 0 && Number(page[i + 1]) <= limit)
}

/** Deletes a job only after removing it from the failed set, since another sweeper may have added its successor meanwhile. */
const REMOVE_FAILED = `
if redis.call('ZREM', KEYS[1], ARGV[1]) == 1 then redis.call('DEL', KEYS[2]) end
`

/** Returns the ids without a live job. Runs per page, because in a long outage a sweep looks at every payload of the queue. */
async function withoutJob(
  redis: Redis,
  keys: QueueKeys,
  lanes: readonly Lane[],
  jobIds: readonly string[],
): Promise<string[]> {
  const isLive = async (jobId: string, lane: Lane): Promise<boolean> => {
    const [job, failed] = [keys.job(lane, jobId), keys.failed(lane)]
    const [exists, failedAt] = await Promise.all([redis.exists(job), redis.zscore(failed, jobId)])
    if (failedAt !== null) await redis.eval(REMOVE_FAILED, 2, failed, job, jobId)
    return exists === 1 && failedAt === null
  }
  const states = await Promise.all(
    jobIds.map(async jobId => {
      const live = await Promise.all(lanes.map(lane => isLive(jobId, lane)))
      return live.includes(true) ? undefined : jobId
    }),
  )
  return states.filter(jobId => jobId !== undefined)
}

/** Sweeps the queues one after the other, at once and `intervalMs` after each sweep, until it is stopped. */
export function startSweeper(deps: SweepDeps, queues: readonly QueueName[], intervalMs: number): { stop(): void } {
  const stopping = new AbortController()
  let timer = setTimeout(sweepAll, 0)
  let areUploadsAdopted = false

  async function adopt(): Promise<void> {
    try {
      await adoptPayloads(deps)
      if (!areUploadsAdopted) await adoptUploads(deps.redis)
      areUploadsAdopted = true
    } catch (error) {
      if (!stopping.signal.aborted) deps.logger.warn(errorFields(error), 'could not adopt keys of an older version')
    }
  }

  async function sweepAll(): Promise<void> {
    await adopt()
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
