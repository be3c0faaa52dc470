import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import type { TraceKey } from '../select-trace.ts'
import { OF_TRACE, TRACE_READ_SETTINGS } from '../span-row.ts'

/** Surfaces of a trace that are named at most. */
export const MOST_SURFACES = 20

/** When the retained spans of a trace arrived, and from where. */
export interface TraceArrivals {
  /** Unix ms. */
  readonly firstMs: number
  readonly lastMs: number
  /** At most `MOST_SURFACES`. */
  readonly surfaceIds: readonly string[]
}

/** Returns when the retained spans of a trace arrived, or undefined if it has none. */
export async function selectTraceArrivals(
  client: ClickHouseClient,
  key: TraceKey,
  signal: AbortSignal,
): Promise<TraceArrivals | undefined> {
  const [row] = await selectRows<{ firstMs: string; lastMs: string; surfaceIds: readonly string[] }>(client, {
    query: `
      SELECT toUnixTimestamp64Milli(min(received_at)) AS firstMs, toUnixTimestamp64Milli(max(received_at)) AS lastMs,
             groupUniqArray(${MOST_SURFACES})(toString(surface_id)) AS surfaceIds
      FROM spans WHERE ${OF_TRACE} HAVING count() > 0`,
    params: { ...key },
    signal,
    // One thread is enough for the few granules of a trace (select-trace.ts).
    settings: { ...TRACE_READ_SETTINGS, max_threads: 1 },
    trace: key,
  })
  return row && { firstMs: Number(row.firstMs), lastMs: Number(row.lastMs), surfaceIds: row.surfaceIds }
}
