import type { ClickHouseClient } from '../client.ts'
import { selectRows } from '../select.ts'
import type { FindingKey } from './select-finding.ts'
import type { FindingsPageKey } from './select-findings.ts'

/** A trace in which a finding occurred; `id` is the trace id. */
export interface FindingTraceRow {
  readonly id: string
  readonly occurrenceCount: string
  readonly lastSeenUnixNano: string
}

/** The traces of a finding, the most recently seen first. Exceptions outside of any trace have none. */
export function selectFindingTraces(
  client: ClickHouseClient,
  { workspaceId, findingId, limit, after }: FindingKey & FindingsPageKey,
  signal: AbortSignal,
): Promise<FindingTraceRow[]> {
  const isAfter = '(lastSeenUnixNano, id) < ({lastSeenUnixNano: UInt64}, {id: String})'
  return selectRows<FindingTraceRow>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS id, sum(occurrence_count) AS occurrenceCount,
             max(last_seen_unix_nano) AS lastSeenUnixNano
      FROM finding_traces
      WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
        AND trace_id != toFixedString('', 16)
      GROUP BY trace_id ${after ? `HAVING ${isAfter}` : ''}
      ORDER BY lastSeenUnixNano DESC, id DESC LIMIT {limit: UInt32}`,
    params: { workspaceId, findingId, limit, ...after },
    signal,
  })
}
