import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { OF_SESSION, type SessionKey } from './session-key.ts'

/** A trace with spans of a session. 64-bit numbers are decimal text. */
export interface SessionTraceRow {
  readonly traceId: string
  readonly startUnixNano: string
  readonly endUnixNano: string
  readonly spanCount: string
  readonly errorCount: string
  /** Number of traces of the session. */
  readonly total: string
  readonly firstUnixNano: string
  readonly lastUnixNano: string
}

/** Returns the traces with spans of a session, the last started first. */
export function selectSessionTraces(
  client: ClickHouseClient,
  key: SessionKey,
  limit: number,
  signal: AbortSignal,
): Promise<SessionTraceRow[]> {
  return selectRows<SessionTraceRow>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS traceId, min(first_start_unix_nano) AS startUnixNano,
             max(last_end_unix_nano) AS endUnixNano, sum(span_count) AS spanCount, sum(error_count) AS errorCount,
             count() OVER () AS total, min(startUnixNano) OVER () AS firstUnixNano,
             max(endUnixNano) OVER () AS lastUnixNano
      FROM session_traces WHERE ${OF_SESSION}
      GROUP BY trace_id ORDER BY startUnixNano DESC, traceId LIMIT {limit: UInt32}`,
    params: { ...key, limit },
    signal,
  })
}
