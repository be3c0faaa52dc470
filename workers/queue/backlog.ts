import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { ADMITTED_QUEUES, QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { lanesOf, queueKeys } from '../../shared/queue/queue.ts'

/** Requests and bytes of a queue that are not finished. */
export interface QueueBacklog {
  readonly queue: QueueName
  readonly payloads: number
  readonly bytes: number
}

/** Queues that only workers write to. The edge reports the backlogs of the others. */
const INTERNAL_QUEUES = QUEUES.filter(queue => !(ADMITTED_QUEUES as readonly QueueName[]).includes(queue))
const COUNTERS = ['acceptedPayloads', 'donePayloads', 'acceptedBytes', 'doneBytes'] as const
/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/** Returns the backlogs of the queues that only workers write to, or nothing if Redis does not respond. */
export async function readInternalBacklogs(redis: Redis): Promise<readonly QueueBacklog[]> {
  if (redis.status !== 'ready') return []
  const read = Promise.all(INTERNAL_QUEUES.map(queue => readBacklog(redis, queue))).catch(() => [])
  return Promise.race([read, delay(READ_TIMEOUT_MS, [], { ref: false })])
}

async function readBacklog(redis: Redis, queue: QueueName): Promise<QueueBacklog> {
  const counters = await redis.hmget(queueKeys(queue).flow, ...COUNTERS)
  const [acceptedPayloads = 0, donePayloads = 0, acceptedBytes = 0, doneBytes = 0] = counters.map(Number)
  return { queue, payloads: acceptedPayloads - donePayloads, bytes: acceptedBytes - doneBytes }
}

/** Returns how many jobs of each queue wait to be taken, or undefined if Redis does not respond. */
export async function readWaitingJobs(
  redis: Redis,
  queues: readonly QueueName[],
): Promise<ReadonlyMap<QueueName, number> | undefined> {
  if (redis.status !== 'ready') return undefined
  const readOne = async (queue: QueueName): Promise<[QueueName, number]> => {
    const lengths = await Promise.all(lanesOf(queue).map(lane => redis.llen(queueKeys(queue).waiting(lane))))
    return [queue, lengths.reduce((sum, length) => sum + length, 0)]
  }
  const read = Promise.all(queues.map(readOne)).then(
    entries => new Map(entries),
    () => undefined,
  )
  return Promise.race([read, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
}
