import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { queueKeys } from '../queue.ts'

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/**
 * Returns the age of the oldest unfinished payload of each queue in seconds, by the clock of Redis. The age of an empty queue
 * is 0. Costs one read of one member for each queue, however long the queues are.
 */
export async function readQueueAges(redis: Redis): Promise<ReadonlyMap<QueueName, number>> {
  const [time, ...oldest] = await Promise.all([
    redis.time(),
    ...QUEUES.map(queue => redis.zrange(queueKeys(queue).pending, '0', '0', 'WITHSCORES')),
  ])
  const nowMs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000
  return new Map(QUEUES.map((queue, i) => [queue, ageSeconds(oldest[i]?.[1], nowMs)]))
}

function ageSeconds(arrivedAtMs: string | undefined, nowMs: number): number {
  return arrivedAtMs === undefined ? 0 : Math.max(0, nowMs - Number(arrivedAtMs)) / 1_000
}

/**
 * Shows the ages of all queues, those included that only workers write to. Edge and workers both report them, so that they
 * are known while one of the two is down. Nothing is shown while Redis does not answer.
 */
export function watchQueueAges(metrics: Metrics, redis: Redis): void {
  metrics.gauge({
    name: 'penstock_queue_oldest_age_seconds',
    help: 'Time since the arrival of the oldest request that is accepted and not yet stored. 0 if there is none.',
    labelNames: ['queue'],
    async collect() {
      this.reset()
      if (redis.status !== 'ready') return
      const ages = readQueueAges(redis).catch(() => undefined)
      const read = await Promise.race([ages, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
      for (const [queue, age] of read ?? []) this.set({ queue }, age)
    },
  })
}
