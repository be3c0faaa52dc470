import type { Redis } from 'ioredis'
import { callReceivers } from '../../alerts/calling/call-receivers.ts'
import type { DeliveryQueue } from '../../alerts/calling/delivery-queue.ts'
import { type SettledSurface, watchArrivals } from '../../alerts/calling/watch-arrivals.ts'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectNowMs } from '../../clickhouse/queries/findings/select-judged-rows.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { readWatermarks, type WatermarkSurface } from '../../shared/queue/watermark.ts'

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

const TIMEOUT_MS = 10_000
/** Looks that are remembered. Failures are judged within ten minutes (failures/judge-failures.ts), one look a second. */
const LOOKS_MAX = 900

/** The watermark of each surface at a moment, by the clock of ClickHouse. */
interface Look {
  readonly atMs: number
  readonly exceptionsMs: ReadonlyMap<string, number>
}

/** Returns a function that finds occasions and queues their deliveries. */
export function createAlertWatch(deps: Deps): (assertElected: () => Promise<void>) => Promise<void> {
  const settled = createSettled(deps)
  return async assertElected => {
    await watchArrivals({ ...deps, settled, assertElected })
    await callReceivers({ ...deps, assertElected })
  }
}

/**
 * Returns a function that reads what is settled of surfaces. Failures are judged by when they were stored. So those that arrived
 * before a watermark are judged once the time is judged at which that watermark was read.
 */
function createSettled({ queues, redis, clickhouse }: Deps) {
  const keyOf = ({ workspaceId, surfaceId }: WatermarkSurface) => `${workspaceId}/${surfaceId}`
  let looks: Look[] = []
  return async (surfaces: readonly WatermarkSurface[]): Promise<SettledSurface[]> => {
    const { surfaces: watermarks } = await readWatermarks(queues, surfaces, { beyondLosses: true })
    const exceptionsMs = watermarks.map(({ settledBeforeMs }) => Math.min(settledBeforeMs.traces, settledBeforeMs.logs))
    const atMs = await selectNowMs(clickhouse, AbortSignal.timeout(TIMEOUT_MS))
    const read = new Map(surfaces.map((surface, i) => [keyOf(surface), exceptionsMs[i] ?? 0]))
    looks = [...looks, { atMs, exceptionsMs: read }].slice(-LOOKS_MAX)
    const judged = parseJson((await redis.get(upkeepKeys.judged)) ?? '{}') as { readonly from?: number }
    const last = looks.findLast(look => look.atMs <= (judged.from ?? 0))
    return surfaces.map((surface, i) => ({
      ...surface,
      exceptionsMs: exceptionsMs[i] ?? 0,
      failuresMs: last?.exceptionsMs.get(keyOf(surface)),
    }))
  }
}
