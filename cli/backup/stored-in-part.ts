import { setTimeout as delay } from 'node:timers/promises'
import type { QueueName } from '../../schemas/queues/names.ts'
import type { Queues } from '../../shared/queue/queues.ts'

/** A job of a named batch, which may be stored in part. */
export interface NamedJob {
  readonly queue: QueueName
  /** Hash tag of the queue and id of the job, which no other job has. */
  readonly id: string
}

/** Returns the jobs of all queues that may be stored in part. Throws if a Redis of the queues does not answer. */
export async function jobsStoredInPart(queues: Queues): Promise<NamedJob[]> {
  const { all } = await queues.read()
  const found = await Promise.all(
    all.map(async ({ name, tag, redis, keys }) =>
      (await redis.hkeys(keys.batchOf)).map(job => ({ queue: name, id: `${tag} ${job}` })),
    ),
  )
  return found.flat()
}

/** How long to wait, and between two looks, in ms. */
interface WaitOptions {
  readonly deadlineMs: number
  readonly pollMs: number
}

/**
 * Waits until the jobs that may be stored in part now are stored, and returns those that are not at the deadline. Rows of such a
 * job may be in a backup that was made just before, and a restored ClickHouse does not know which inserts it has seen. If the job
 * still waited in Redis then, its rows would be stored twice.
 */
export async function untilStored(queues: Queues, { deadlineMs, pollMs }: WaitOptions): Promise<readonly NamedJob[]> {
  const endAtMs = performance.now() + deadlineMs
  let left = await jobsStoredInPart(queues)
  while (left.length > 0 && performance.now() < endAtMs) {
    await delay(pollMs)
    const present = new Set((await jobsStoredInPart(queues)).map(({ id }) => id))
    left = left.filter(({ id }) => present.has(id))
  }
  return left
}
