import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { TraceKey } from './select-trace.ts'
import { OF_TRACE, SPAN_PRECEDENCE, SPAN_ROW, type SpanRow } from './span-row.ts'

/** Returns the rows to show for these span ids (16 hex digits each), one for each id, in no order. */
export function selectSpansById(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<SpanRow[]> {
  return selectRows<SpanRow>(client, {
    query: `
      SELECT ${SPAN_ROW} FROM spans
      WHERE ${OF_TRACE} AND span_id IN (SELECT toFixedString(unhex(arrayJoin({spanIds: Array(String)})), 8))
      ORDER BY ${SPAN_PRECEDENCE} LIMIT 1 BY span_id`,
    params: { ...key, spanIds },
    signal,
  })
}
