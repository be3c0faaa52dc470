import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectRows } from '../../select.ts'
import { TRACE_READ_SETTINGS } from '../traces/span-row.ts'
import type { FindingKey } from './select-finding.ts'
import type { ArrivalKey } from './select-findings-page.ts'

/** A trace in which a finding occurred. `id` is the trace id; its key is the first arrival. */
export interface FindingTraceRow extends ArrivalKey {
  readonly occurrenceCount: string
  readonly lastSeenUnixNano: string
}

/**
 * Returns the traces of a finding, the newest first. The order is that of the first arrival in each trace, so later
 * arrivals do not change it. Exceptions outside a trace are not included.
 */
export function selectFindingTraces(
  client: ClickHouseClient,
  { workspaceId, findingId, limit, after }: FindingKey & { limit: number; after: ArrivalKey | undefined },
  signal: AbortSignal,
): Promise<FindingTraceRow[]> {
  const isAfter = '(storedMs, receivedMs, id) < ({storedMs: Int64}, {receivedMs: Int64}, {id: String})'
  return selectRows<FindingTraceRow>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS id, sum(occurrence_count) AS occurrenceCount,
             max(last_seen_unix_nano) AS lastSeenUnixNano, min(first_arrival) AS first,
             toUnixTimestamp64Milli(first.1) AS storedMs, toUnixTimestamp64Milli(first.2) AS receivedMs
      FROM finding_traces
      WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
        AND trace_id != toFixedString('', 16)
      GROUP BY trace_id ${after ? `HAVING ${isAfter}` : ''}
      ORDER BY storedMs DESC, receivedMs DESC, id DESC LIMIT {limit: UInt32}`,
    params: { workspaceId, findingId, limit, ...after },
    signal,
  })
}

/** Identifies a trace of a finding. */
export type FindingTraceKey = FindingKey & TraceKey

/** Returns whether a finding of this workspace occurred in this trace. */
export async function selectFindingHasTrace(
  client: ClickHouseClient,
  key: FindingTraceKey,
  signal: AbortSignal,
): Promise<boolean> {
  const rows = await selectRows(client, {
    query: `SELECT 1 FROM finding_traces
            WHERE workspace_id = {workspaceId: String} AND finding_id = {findingId: String}
              AND trace_id = unhex({traceId: String}) LIMIT 1`,
    params: { ...key },
    signal,
    // The query reads one granule: a second thread would cost more than the read.
    settings: { ...TRACE_READ_SETTINGS, max_threads: 1 },
    trace: key,
  })
  return rows.length > 0
}
