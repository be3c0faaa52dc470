import type { ClickHouseClient } from '../../client.ts'
import { selectBytes } from '../../select.ts'
import type { TraceKey } from './select-trace.ts'
import { OF_TRACE, TRACE_STREAM_SETTINGS } from './span-row.ts'

const SPAN_ID_BYTES = 8

/**
 * Returns the ids (16 hex digits each) of the first `limit` spans of a trace by start. The order is that of the primary key, so
 * that rows after them are not read, however many spans the trace has.
 */
export async function selectFirstSpanIds(
  client: ClickHouseClient,
  key: TraceKey,
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const query = `
    SELECT span_id FROM spans WHERE ${OF_TRACE} ORDER BY start_time_unix_nano, span_id
    LIMIT 1 BY span_id LIMIT {limit: UInt32} FORMAT RowBinary`
  const params = { ...key, limit }
  const bytes = await selectBytes(client, { query, params, signal, settings: TRACE_STREAM_SETTINGS, trace: key })
  return Array.from({ length: bytes.length / SPAN_ID_BYTES }, (_, i) =>
    bytes.toString('hex', i * SPAN_ID_BYTES, (i + 1) * SPAN_ID_BYTES),
  )
}
