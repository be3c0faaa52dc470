import { setTimeout as delay } from 'node:timers/promises'
import { isAdmitted, QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { type Lane, lanesOf } from '../../shared/queue/queue.ts'
import type { Queues, RedisQueue } from '../../shared/queue/queues.ts'

/** Requests and bytes of a queue that are not finished. */
export interface QueueBacklog {
  readonly queue: QueueName
  readonly payloads: number
  readonly bytes: number
}

/** Queues that only workers write to. The edge reports the backlogs of the others. */
const INTERNAL_QUEUES = QUEUES.filter(queue => !isAdmitted(queue))
const COUNTERS = ['acceptedPayloads', 'donePayloads', 'acceptedBytes', 'doneBytes'] as const
/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/** Returns the backlogs of the queues that only workers write to, or nothing if Redis does not respond. */
export async function readInternalBacklogs(queues: Queues): Promise<readonly QueueBacklog[]> {
  if (queues.common.status !== 'ready') return []
  const readAll = async () => {
    const { of } = await queues.read()
    return Promise.all(INTERNAL_QUEUES.map(async name => ({ queue: name, ...(await readBacklog(of(name))) })))
  }
  return Promise.race([readAll().catch(() => []), delay(READ_TIMEOUT_MS, [], { ref: false })])
}

async function readBacklog(queues: readonly RedisQueue[]): Promise<Omit<QueueBacklog, 'queue'>> {
  const read = queues.map(async ({ redis, keys }) => {
    const counters = await redis.hmget(keys.flow, ...COUNTERS)
    const [acceptedPayloads = 0, donePayloads = 0, acceptedBytes = 0, doneBytes = 0] = counters.map(Number)
    return { payloads: acceptedPayloads - donePayloads, bytes: acceptedBytes - doneBytes }
  })
  const sum = { payloads: 0, bytes: 0 }
  for (const { payloads, bytes } of await Promise.all(read)) {
    sum.payloads += payloads
    sum.bytes += bytes
  }
  return sum
}

/**
 * Returns how many jobs of the queues of each name wait to be taken, or undefined if Redis does not respond. None of a paused lane
 * does.
 */
export async function readWaitingJobs(
  queues: Queues,
  names: readonly QueueName[],
): Promise<ReadonlyMap<QueueName, number> | undefined> {
  if (queues.common.status !== 'ready') return undefined
  const readAll = async () => {
    const { of } = await queues.read()
    const waiting = async (name: QueueName): Promise<[QueueName, number]> => {
      const lengths = of(name).flatMap(queue => lanesOf(name).map(lane => readWaiting(queue, lane)))
      return [name, (await Promise.all(lengths)).reduce((sum, length) => sum + length, 0)]
    }
    return new Map(await Promise.all(names.map(waiting)))
  }
  return Promise.race([readAll().catch(() => undefined), delay(READ_TIMEOUT_MS, undefined, { ref: false })])
}

async function readWaiting({ redis, keys }: RedisQueue, lane: Lane): Promise<number> {
  const [length, paused] = await Promise.all([
    redis.llen(keys.waiting(lane)),
    redis.hexists(keys.settings(lane), 'paused'),
  ])
  return paused === 1 ? 0 : length
}
