import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectRows } from '../../select.ts'
import { IN_SPAN_IDS, OF_TRACE_ID, TRACE_READ_SETTINGS } from './span-row.ts'

/** Findings of a span that are named. */
const MOST_FINDINGS = 8

/**
 * Returns the findings of the exceptions of spans, in the order of their first occurrence. Spans without any are left out.
 * Exceptions of log records belong to no span.
 */
export async function selectFindingsOfSpans(
  client: ClickHouseClient,
  key: TraceKey,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await selectRows<{ spanId: string; findingIds: string[] }>(client, {
    query: `
      SELECT spanId, groupArray(finding_id) AS findingIds
      FROM (
        SELECT lower(hex(span_id)) AS spanId, finding_id, min(occurred_at_unix_nano) AS first
        FROM exceptions WHERE ${OF_TRACE_ID} AND ${IN_SPAN_IDS} AND source != 'log_record'
        GROUP BY spanId, finding_id ORDER BY first, finding_id LIMIT ${MOST_FINDINGS} BY spanId
      )
      GROUP BY spanId`,
    params: { ...key, spanIds },
    signal,
    settings: { ...TRACE_READ_SETTINGS, max_threads: 1 },
    trace: key,
  })
  return new Map(rows.map(({ spanId, findingIds }) => [spanId, findingIds]))
}
