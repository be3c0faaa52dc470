import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectRows } from '../../select.ts'
import { isCounting, selectFindingsOfVariants } from '../attributes/membership.ts'
import { IN_SPAN_IDS, OF_TRACE_ID, TRACE_READ_SETTINGS } from './span-row.ts'

/** Findings of a span that are named. */
const MOST_FINDINGS = 8

const OF_SPANS = `${OF_TRACE_ID} AND ${IN_SPAN_IDS} AND source != 'log_record'`

/**
 * Returns the findings of the exceptions of spans, in the order of their first occurrence. Spans without any are left out.
 * Exceptions of log records belong to no span. In a cluster, what has moved a variant may be on another shard than the trace.
 */
export async function selectFindingsOfSpans(
  client: ClickHouseClient,
  key: TraceKey,
  merges: FindingMerges,
  spanIds: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const occurred = await selectRows<{ spanId: string; variantId: string }>(client, {
    query: `
      SELECT lower(hex(span_id)) AS spanId, lower(hex(variant_id)) AS variantId
      FROM exceptions WHERE ${OF_SPANS} AND (source != 'span_status' OR ${isCounting(OF_SPANS)})
      GROUP BY span_id, variant_id ORDER BY min(occurred_at_unix_nano), variant_id`,
    params: { ...key, spanIds },
    signal,
    settings: { ...TRACE_READ_SETTINGS, max_threads: 1 },
    trace: key,
  })
  const { workspaceId } = key
  const variantIds = occurred.map(({ variantId }) => variantId)
  const findings = await selectFindingsOfVariants(client, { workspaceId, variantIds, merges }, signal)
  const ofSpans = new Map<string, Set<string>>()
  for (const { spanId, variantId } of occurred) {
    const found = ofSpans.get(spanId) ?? new Set()
    const id = findings.get(variantId)
    if (id !== undefined && found.size < MOST_FINDINGS) ofSpans.set(spanId, found.add(id))
  }
  return new Map([...ofSpans].map(([spanId, ids]) => [spanId, [...ids]]))
}
