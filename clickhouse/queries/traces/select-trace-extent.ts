import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectRows } from '../../select.ts'
import { OF_TRACE, TRACE_READ_SETTINGS } from './span-row.ts'

/** Maximum number of surfaces returned. */
export const MOST_SURFACES = 20

/** When the retained spans of a trace arrived, and from where. */
export interface TraceArrivals {
  /** Unix ms. */
  readonly firstMs: number
  readonly lastMs: number
  /** At most `MOST_SURFACES`. */
  readonly surfaceIds: readonly string[]
}

/** What a read of its first rows does not know of a trace. */
interface TraceExtent {
  /** When its last span ended. A span that ends before it starts ends at its start. */
  readonly endedAtUnixNano: bigint
  readonly arrivals: TraceArrivals
}

/** Returns the extent of a trace, or undefined if none of its spans are retained. */
export async function selectTraceExtent(
  client: ClickHouseClient,
  key: TraceKey,
  signal: AbortSignal,
): Promise<TraceExtent | undefined> {
  const [row] = await selectRows<{
    endUnixNano: string
    firstMs: string
    lastMs: string
    surfaceIds: readonly string[]
  }>(client, {
    query: `
      SELECT max(greatest(start_time_unix_nano, end_time_unix_nano)) AS endUnixNano,
             toUnixTimestamp64Milli(min(received_at)) AS firstMs, toUnixTimestamp64Milli(max(received_at)) AS lastMs,
             groupUniqArray(${MOST_SURFACES})(toString(surface_id)) AS surfaceIds
      FROM spans WHERE ${OF_TRACE} HAVING count() > 0`,
    params: { ...key },
    signal,
    settings: TRACE_READ_SETTINGS,
    trace: key,
  })
  if (row === undefined) return undefined
  const arrivals = { firstMs: Number(row.firstMs), lastMs: Number(row.lastMs), surfaceIds: row.surfaceIds }
  return { endedAtUnixNano: BigInt(row.endUnixNano), arrivals }
}
