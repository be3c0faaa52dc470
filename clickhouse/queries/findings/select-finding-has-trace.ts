import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import type { TraceKey } from '../traces/select-trace.ts'
import { TRACE_READ_SETTINGS } from '../traces/span-row.ts'
import type { FindingKey } from './select-finding.ts'

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
