import { setTimeout as delay } from 'node:timers/promises'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import { queueKeys } from '../queue.ts'
import type { QueueConnections } from '../queues.ts'
import { partitionsOf } from '../registry/queue-tag.ts'
import { redisTimeMs } from '../watermark.ts'

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000

/** Age of the oldest unfinished payload of a partition, in seconds. 0 if it is empty. */
interface PartitionAge {
  readonly queue: QueueName
  readonly partition: number
  readonly seconds: number
}

/**
 * Returns the age of the oldest unfinished payload of each partition, by the clock of its server. Costs one read of one member
 * for each, however long the queues are.
 */
export async function readQueueAges(queues: QueueConnections): Promise<readonly PartitionAge[]> {
  const { numbers } = await queues.partitions()
  const places = QUEUES.flatMap(queue => partitionsOf(queue, numbers).map(partition => ({ queue, partition })))
  const connections = new Set(places.map(({ queue, partition }) => queues.at(queue, partition)))
  const [times, oldest] = await Promise.all([
    Promise.all([...connections].map(async redis => [redis, await redisTimeMs(redis)] as const)),
    Promise.all(
      places.map(({ queue, partition }) =>
        queues.at(queue, partition).zrange(queueKeys(queue, partition).pending, '0', '0', 'WITHSCORES'),
      ),
    ),
  ])
  const timeOf = new Map(times)
  return places.map(({ queue, partition }, i) => {
    const nowMs = timeOf.get(queues.at(queue, partition)) ?? 0
    return { queue, partition, seconds: ageSeconds(oldest[i]?.[1], nowMs) }
  })
}

function ageSeconds(acceptedAtMs: string | undefined, nowMs: number): number {
  return acceptedAtMs === undefined ? 0 : Math.max(0, nowMs - Number(acceptedAtMs)) / 1_000
}

/**
 * Shows the ages of all queues, those included that only workers write to. Edge and workers both report them, so that they
 * are known while one of the two is down. Nothing is shown while Redis does not answer.
 */
export function watchQueueAges(metrics: Metrics, queues: QueueConnections): void {
  const ofPartitions = metrics.gauge({
    name: 'penstock_partition_oldest_age_seconds',
    help: 'The same for each partition, over all queues.',
    labelNames: ['partition'],
  })
  metrics.gauge({
    name: 'penstock_queue_oldest_age_seconds',
    help: 'Time since the arrival of the oldest request that is accepted and not yet stored. 0 if there is none.',
    labelNames: ['queue'],
    async collect() {
      this.reset()
      ofPartitions.reset()
      if (queues.common.status !== 'ready') return
      const ages = readQueueAges(queues).catch(() => [])
      const read = await Promise.race([ages, delay(READ_TIMEOUT_MS, [], { ref: false })])
      for (const [queue, age] of oldestBy(read, ({ queue }) => queue)) this.set({ queue }, age)
      for (const [partition, age] of oldestBy(read, place => place.partition)) ofPartitions.set({ partition }, age)
    },
  })
}

/** Returns the age of the oldest payload by a part of its place. */
export function oldestBy<K>(ages: readonly PartitionAge[], keyOf: (age: PartitionAge) => K): ReadonlyMap<K, number> {
  const oldest = new Map<K, number>()
  for (const age of ages) oldest.set(keyOf(age), Math.max(age.seconds, oldest.get(keyOf(age)) ?? 0))
  return oldest
}
