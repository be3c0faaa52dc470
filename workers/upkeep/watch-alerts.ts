import type { Redis } from 'ioredis'
import { callReceivers } from '../../alerts/calling/call-receivers.ts'
import type { DeliveryQueue } from '../../alerts/calling/delivery-queue.ts'
import { watchArrivals } from '../../alerts/calling/watch-arrivals.ts'
import { watchMeasures } from '../../alerts/measuring/watch-measures.ts'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { redisTimeMs } from '../../shared/queue/watermark.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createSettled } from './settled-surfaces.ts'

/** The queue into which the upkeep puts deliveries, and where their links lead. */
export interface AlertsOfUpkeep {
  readonly queue: DeliveryQueue
  /** The address of the console, `https://penstock.example/console/`. */
  readonly consoleUrl: string
}

interface Deps extends AlertsOfUpkeep {
  readonly clickhouse: ClickHouseClient
  readonly redis: Redis
  readonly directory: Directory
  readonly queues: Queues
  readonly now: () => number
}

/** Returns a function that finds occasions and queues their deliveries. */
export function createAlertWatch(deps: Deps): (assertElected: () => Promise<void>) => Promise<void> {
  const read = createSettled(deps)
  const settled = async (of: Parameters<typeof read>[0]) => (await read(of)).surfaces
  return async assertElected => {
    await watchArrivals({ ...deps, settled, assertElected })
    await callReceivers({ ...deps, assertElected })
  }
}

/** Returns a function that measures what rules measure, and adds the occasions. */
export function createMeasureWatch(
  deps: Pick<Deps, 'clickhouse' | 'redis' | 'directory' | 'queues'> & { readonly logger: Logger },
): (assertElected: () => Promise<void>) => Promise<void> {
  const settled = createSettled(deps)
  return assertElected => watchMeasures({ ...deps, settled, assertElected, nowMs: () => redisTimeMs(deps.redis) })
}
