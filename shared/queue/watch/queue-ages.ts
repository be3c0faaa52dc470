import { setTimeout as delay } from 'node:timers/promises'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import type { Queues } from '../queues.ts'
import { redisTimeMs } from '../watermark.ts'

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/**
 * Returns the age of the oldest unfinished payload of the queues of each name in seconds, by the clocks of their servers. 0 if they
 * are empty. Costs one read of one member for each queue, however long the queues are.
 */
export async function readQueueAges(queues: Queues): Promise<ReadonlyMap<QueueName, number>> {
  const { all } = await queues.read()
  const connections = new Set(all.map(({ redis }) => redis))
  const [times, oldest] = await Promise.all([
    Promise.all([...connections].map(async redis => [redis, await redisTimeMs(redis)] as const)),
    Promise.all(all.map(({ redis, keys }) => redis.zrange(keys.pending, '0', '0', 'WITHSCORES'))),
  ])
  const timeOf = new Map(times)
  const ages = new Map<QueueName, number>()
  for (const [i, { name, redis }] of all.entries()) {
    const acceptedAtMs = oldest[i]?.[1]
    const ageMs = acceptedAtMs === undefined ? 0 : (timeOf.get(redis) ?? 0) - Number(acceptedAtMs)
    ages.set(name, Math.max(ages.get(name) ?? 0, ageMs / 1_000))
  }
  return ages
}

/**
 * Shows the ages of all queues, those included that only workers write to. Edge and workers both report them, so that they
 * are known while one of the two is down. Nothing is shown while Redis does not answer.
 */
export function watchQueueAges(metrics: Metrics, queues: Queues): void {
  metrics.gauge({
    name: 'penstock_queue_oldest_age_seconds',
    help: 'Time since the arrival of the oldest request that is accepted and not yet stored. 0 if there is none.',
    labelNames: ['queue'],
    async collect() {
      this.reset()
      if (queues.common.status !== 'ready') return
      const ages = readQueueAges(queues).catch(() => undefined)
      const read = await Promise.race([ages, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
      for (const [queue, age] of read ?? []) this.set({ queue }, age)
    },
  })
}
