import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { upkeepKeys } from '../../shared/directory/record.ts'

/** Deliveries of alerts that have not ended, and those that have ended without being accepted. */
export interface WaitingDeliveries {
  /** Those that are due. */
  readonly due: number
  /** Those whose next attempt is later, or that wait for an earlier event of their finding. */
  readonly later: number
  /** Those that are not repeated any more and can be replayed. */
  readonly parked: number
  /** Time since the oldest of `due` was due, in seconds. 0 if there is none. */
  readonly oldestDueSeconds: number
}

/** BullMQ multiplies the time of a delayed job by this, and adds a number. */
const SCORES_OF_MS = 4_096
/** A report must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/** Reads the queue of deliveries. Returns undefined if the Redis of the directory does not respond. */
export function readWaitingDeliveries(redis: Redis, nowMs = Date.now()): Promise<WaitingDeliveries | undefined> {
  if (redis.status !== 'ready') return Promise.resolve(undefined)
  const reading = readAll(redis, nowMs).catch(() => undefined)
  return Promise.race([reading, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
}

async function readAll(redis: Redis, nowMs: number): Promise<WaitingDeliveries> {
  const [waitKey, delayedKey] = [upkeepKeys.deliveries('wait'), upkeepKeys.deliveries('delayed')]
  const untilNow = (nowMs + 1) * SCORES_OF_MS - 1
  const [waiting, next, delayed, delayedDue, firstDelayed, parked] = await Promise.all([
    redis.llen(waitKey),
    redis.lindex(waitKey, -1),
    redis.zcard(delayedKey),
    redis.zcount(delayedKey, '-inf', untilNow),
    redis.zrange(delayedKey, '0', '0', 'WITHSCORES'),
    redis.zcard(upkeepKeys.deliveries('failed')),
  ])
  const [addedMs, dueMs] = next === null ? [] : await redis.hmget(upkeepKeys.deliveries(next), 'timestamp', 'progress')
  const oldestMs = Math.min(
    nowMs,
    // The deliverer keeps the time of the next attempt as the progress of a job (alerts/calling/deliver.ts).
    ...(addedMs == null ? [] : [Number(dueMs ?? 0) || Number(addedMs)]),
    ...(firstDelayed[1] === undefined ? [] : [Math.floor(Number(firstDelayed[1]) / SCORES_OF_MS)]),
  )
  return {
    ...{ due: waiting + delayedDue, later: delayed - delayedDue, parked },
    oldestDueSeconds: (nowMs - oldestMs) / 1_000,
  }
}
