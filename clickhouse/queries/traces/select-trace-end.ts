import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { TraceKey } from './select-trace.ts'
import { OF_TRACE, TRACE_READ_SETTINGS } from './span-row.ts'

/** Returns when the last span of a trace ended, in Unix nanoseconds. A span that ends before it starts ends at its start. */
export async function selectTraceEnd(client: ClickHouseClient, key: TraceKey, signal: AbortSignal): Promise<bigint> {
  const [row] = await selectRows<{ endUnixNano: string }>(client, {
    query: `SELECT max(greatest(start_time_unix_nano, end_time_unix_nano)) AS endUnixNano FROM spans WHERE ${OF_TRACE}`,
    params: { ...key },
    signal,
    settings: TRACE_READ_SETTINGS,
    trace: key,
  })
  return BigInt(row?.endUnixNano ?? 0)
}
