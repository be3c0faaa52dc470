import { traceHash } from '../../../../shared/ids/trace-hash.ts'
import type { ClickHouseClient } from '../../../client.ts'
import type { TraceKey } from '../../../read-connection.ts'
import { selectRows } from '../../../select.ts'
import { type LossPeriod, lossOf, type TraceLoss } from './select-trace-losses.ts'

interface Row {
  readonly surfaceId: string
  readonly rule: string
  readonly spans: string
  readonly fromMs: string
  readonly toMs: string
}

/**
 * Returns the spans of a trace that rules of its workspace have dropped in a period (docs/api/dropping.md), by surface and rule.
 * The log has the hashes of their traces. Where it has not all of them, any dropped span may have been of this trace.
 */
export async function selectDroppedSpans(
  client: ClickHouseClient,
  { traceId }: TraceKey,
  period: LossPeriod,
  signal: AbortSignal,
): Promise<TraceLoss[]> {
  const { workspaceId, fromMs, toMs } = period
  const rows = await selectRows<Row>(client, {
    query: `
      SELECT surface_id AS surfaceId, rule, sum(if(of_trace > 0, of_trace, 1)) AS spans,
             min(toUnixTimestamp64Milli(received_at)) AS fromMs, max(toUnixTimestamp64Milli(received_at)) AS toMs
      FROM (
        SELECT surface_id, received_at, rule, dropped[rule] > length(dropped_spans[rule]) AS is_cut,
               countEqual(dropped_spans[rule], {hash: UInt32}) AS of_trace
        FROM ingest_log ARRAY JOIN mapKeys(dropped) AS rule
        WHERE workspace_id = {workspaceId: String} AND signal = 'traces'
          AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64}))
      WHERE of_trace > 0 OR is_cut
      GROUP BY surfaceId, rule`,
    params: { workspaceId, fromMs, toMs, hash: traceHash(Buffer.from(traceId, 'hex')) },
    signal,
    settings: { max_threads: 1 },
  })
  return rows.map(({ surfaceId, rule, spans, ...times }) => {
    const range = { fromMs: Number(times.fromMs), toMs: Number(times.toMs) }
    return { ...lossOf(period, 'dropped', { surfaceId, count: Number(spans), ...range }), rule }
  })
}
