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

/** A new surface of a workspace is found after this time. Nothing of it is missed (`watchArrivals`). */
const SURFACES_MS = 10_000
const KNOWN_MAX = 10_000

/** Returns a function that finds occasions and queues their deliveries. It returns the time until the next look in ms. */
export function createAlertWatch(deps: Deps): (assertElected: () => Promise<void>) => Promise<number | undefined> {
  const settled = createSettled(deps)
  const directory = { ...deps.directory, surfaceIds: createKnownSurfaces(deps.directory) }
  return async assertElected => {
    let againAt: number | undefined
    try {
      againAt = await watchArrivals({ ...deps, directory, settled, assertElected })
    } finally {
      // Also while nothing more can be found: something may wait to be called for.
      await callReceivers({ ...deps, assertElected })
    }
    return againAt && Math.max(0, againAt - performance.now())
  }
}

/** Returns a function that reads the surfaces of a workspace every ten seconds. Forgets all if there are many. */
function createKnownSurfaces({ surfaceIds }: Pick<Directory, 'surfaceIds'>): Directory['surfaceIds'] {
  const known = new Map<string, { readonly ids: string[]; readonly readAt: number }>()
  return async workspaceId => {
    const last = known.get(workspaceId)
    if (last !== undefined && performance.now() - last.readAt < SURFACES_MS) return last.ids
    const ids = await surfaceIds(workspaceId)
    if (known.size >= KNOWN_MAX) known.clear()
    known.set(workspaceId, { ids, readAt: performance.now() })
    return ids
  }
}

/** Returns a function that measures what rules measure, and adds the occasions. It returns the time until the next look in ms. */
export function createMeasureWatch(
  deps: Pick<Deps, 'clickhouse' | 'redis' | 'directory' | 'queues'> & { readonly logger: Logger },
): (assertElected: () => Promise<void>) => Promise<number> {
  const [settled, quiet] = [createSettled(deps), new Map<string, number>()]
  return assertElected =>
    watchMeasures({ ...deps, settled, quiet, assertElected, nowMs: () => redisTimeMs(deps.redis) })
}
