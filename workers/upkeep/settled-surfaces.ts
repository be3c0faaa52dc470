import type { Redis } from 'ioredis'
import type { MeasuredSurface } from '../../alerts/measuring/watch-measures.ts'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectNowMs } from '../../clickhouse/queries/findings/select-judged-rows.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { readWatermarks, type WatermarkSurface } from '../../shared/queue/watermark.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  /** Redis of the directory. */
  readonly redis: Redis
  readonly queues: Queues
}

/** Surfaces with what is settled of them, and the time of Redis at which that was read. */
interface SettledSurfaces {
  readonly readAtMs: number
  readonly surfaces: MeasuredSurface[]
}

const TIMEOUT_MS = 10_000
/** Time between two looks. Failures are judged every ten seconds, so that more would make no event earlier. */
const LOOK_EVERY_MS = 5_000
/** Looks that are remembered. Failures are judged within ten minutes (failures/judge-failures.ts). */
const LOOKS_MAX = 180

/** The watermark of each surface at a moment, by the clock of ClickHouse. */
interface Look {
  readonly atMs: number
  readonly exceptionsMs: ReadonlyMap<string, number>
}

/**
 * Returns a function that reads what is settled of surfaces. Failures are judged by when they were stored. So those that arrived
 * before a watermark are judged once the time is judged at which that watermark was read.
 */
export function createSettled({ queues, redis, clickhouse }: Deps) {
  const keyOf = ({ workspaceId, surfaceId }: WatermarkSurface) => `${workspaceId}/${surfaceId}`
  let looks: Look[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  const knownBefore = (key: string, judgedMs: number) =>
    looks.findLast(({ atMs, exceptionsMs }) => atMs <= judgedMs && exceptionsMs.has(key))?.exceptionsMs.get(key)
  return async (surfaces: readonly WatermarkSurface[]): Promise<SettledSurfaces> => {
    const { readAtMs, surfaces: watermarks } = await readWatermarks(queues, surfaces, { beyondLosses: true })
    const exceptionsMs = watermarks.map(({ settledBeforeMs }) => Math.min(settledBeforeMs.traces, settledBeforeMs.logs))
    if (performance.now() - lookedAt >= LOOK_EVERY_MS) {
      const read = new Map(surfaces.map((surface, i) => [keyOf(surface), exceptionsMs[i] ?? 0]))
      const atMs = await selectNowMs(clickhouse, AbortSignal.timeout(TIMEOUT_MS))
      looks = [...looks, { atMs, exceptionsMs: read }].slice(-LOOKS_MAX)
      lookedAt = performance.now()
    }
    const judged = parseJson((await redis.get(upkeepKeys.judged)) ?? '{}') as { readonly from?: number }
    const judgedMs = judged.from ?? 0
    return {
      readAtMs,
      surfaces: surfaces.map((surface, i) => {
        const { settledBeforeMs, unfinishedSinceMs } = watermarks[i] ?? { settledBeforeMs: undefined }
        return {
          ...surface,
          exceptionsMs: exceptionsMs[i] ?? 0,
          failuresMs: knownBefore(keyOf(surface), judgedMs),
          spanCountsMs: Math.min(settledBeforeMs?.traces ?? 0, unfinishedSinceMs?.['span-stats'] ?? 0),
          metricsMs: settledBeforeMs?.metrics ?? 0,
          allMs: Math.min(...Object.values(settledBeforeMs ?? { none: 0 })),
        }
      }),
    }
  }
}
