import type { ClickHouseClient } from '../../client.ts'
import { selectBytes } from '../../select.ts'
import type { TraceKey } from './select-trace.ts'
import { OF_TRACE, SPAN_PRECEDENCE } from './span-row.ts'
import { SPAN_COLUMNS, SpanRows } from './span-rows.ts'

/** Returns the rows to show for these span ids (16 hex digits each), one for each id, in no order. */
export async function selectSpansById(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<SpanRows> {
  const query = `
    SELECT ${SPAN_COLUMNS} FROM spans
    WHERE ${OF_TRACE} AND span_id IN (SELECT toFixedString(unhex(arrayJoin({spanIds: Array(String)})), 8))
    ORDER BY ${SPAN_PRECEDENCE} LIMIT 1 BY span_id
    FORMAT RowBinary`
  return new SpanRows(await selectBytes(client, { query, params: { ...key, spanIds }, signal, trace: key }))
}
