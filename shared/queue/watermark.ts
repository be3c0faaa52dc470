import type { Redis } from 'ioredis'
import { ADMITTED_QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { queueKeys } from './queue.ts'

/**
 * Queues in the order in which a request passes through them. A request is in one of them from its acceptance until it is
 * settled, because one script takes it out of one queue and puts what derives from it into the next. Reading them in this
 * order misses none that moves meanwhile: it is ahead of the reader, or the reader has seen it. Letters of the index of the
 * dead letters return to the dead letters once, so these are read twice.
 */
const IN_ORDER_OF_PASSAGE: readonly QueueName[] = [
  ...ADMITTED_QUEUES,
  'replay-chunks',
  'symbolication',
  'receipts',
  'dead-letters',
  'dead-letter-index',
  'dead-letters',
]

/**
 * Returns a time in Unix ms, by the clock of Redis: everything that the workspace had accepted before it is settled, that is
 * stored, dead-lettered or discarded (docs/contract.md#watermarks). Compare it with `redisTimeMs`, never with the clock of a
 * process. `redis` is the Redis of the queues.
 *
 * The time is read first. A request accepted before it is in a queue whose oldest acceptance is no later, or it is settled.
 */
export async function settledBeforeMs(redis: Redis, _workspaceId: string): Promise<number> {
  const now = redisTimeMs(redis)
  const oldest = await Promise.all(
    IN_ORDER_OF_PASSAGE.map(queue => redis.zrange(queueKeys(queue).pending, 0, '0', 'WITHSCORES')),
  )
  return Math.min(await now, ...oldest.map(([, acceptedAtMs = Infinity]) => Number(acceptedAtMs)))
}

/** Returns the time of Redis in Unix ms, rounded down. */
export async function redisTimeMs(redis: Redis): Promise<number> {
  const [seconds = 0, microseconds = 0] = (await redis.time()).map(Number)
  return seconds * 1_000 + Math.floor(microseconds / 1_000)
}
