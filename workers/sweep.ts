import type { Redis } from 'ioredis'
import type { CommitJob, QueueName } from '../schemas/jobs.ts'
import { describeError } from '../shared/errors.ts'
import type { Logger } from '../shared/logger.ts'
import { decodePayload } from '../shared/payload-frame.ts'
import { JOB_OPTIONS, openQueue, queueKeys } from '../shared/queue.ts'
import type { NewPayload } from './payload-store.ts'

/** Adds the jobs of payloads that are in Redis already. A job that exists is left alone, one that was done finds nothing. */
export function createJobAdder(redis: Redis) {
  const queues = new Map<QueueName, ReturnType<typeof openQueue>>()
  return {
    async add(name: QueueName, payloads: readonly NewPayload[]): Promise<void> {
      let queue = queues.get(name)
      if (queue === undefined) {
        queue = openQueue(redis, name)
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
  readonly addJobs: (queue: QueueName, payloads: readonly NewPayload[]) => Promise<void>
}

/**
 * Gives every payload without a live job its job again: a worker died between moving a payload and adding its job, or
 * someone emptied the queue. Never deletes. Returns how many it found.
 */
export async function sweep(deps: SweepDeps, queue: QueueName): Promise<number> {
  const { redis } = deps
  const keys = queueKeys(queue)
  let found = 0
  for await (const page of redis.scanStream({ match: `${keys.payloadPrefix}*`, count: 500 })) {
    for (const key of page as string[]) {
      const jobId = key.slice(keys.payloadPrefix.length)
      const [exists, failed] = await Promise.all([redis.exists(keys.job(jobId)), redis.zscore(keys.failed, jobId)])
      if (exists === 1 && failed === null) continue
      const payload = await redis.getBuffer(key)
      if (payload === null) continue
      if (failed !== null) await redis.multi().zrem(keys.failed, jobId).del(keys.job(jobId)).exec()
      await deps.addJobs(queue, [{ jobId, payload, frames: decodePayload(payload).length }])
      found++
    }
  }
  return found
}

/** Sweeps now and then, one queue after the other, until it is stopped. */
export function startSweeper(
  deps: SweepDeps & { logger: Logger },
  queues: readonly QueueName[],
  intervalMs: number,
): { stop(): Promise<void> } {
  let running = Promise.resolve()
  const timer = setInterval(() => {
    running = running.then(sweepAll)
  }, intervalMs)

  async function sweepAll(): Promise<void> {
    for (const queue of queues) {
      try {
        const found = await sweep(deps, queue)
        if (found > 0) deps.logger.warn({ queue, found }, 'payloads without a job were given one')
      } catch (error) {
        deps.logger.warn({ queue, error: describeError(error) }, 'sweep failed')
      }
    }
  }

  return {
    stop() {
      clearInterval(timer)
      return running
    },
  }
}
