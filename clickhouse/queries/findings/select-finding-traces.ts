import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectRows } from '../../select.ts'
import {
  type FindingKey,
  findingParams,
  isCounting,
  ofFinding,
  SEEN_UNIX_NANO,
  VARIANT_IDS,
} from '../attributes/membership.ts'
import { OF_TRACE_ID, TRACE_READ_SETTINGS } from '../traces/span-row.ts'
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
  { after, ...key }: FindingKey & { readonly limit: number; readonly after: ArrivalKey | undefined },
  signal: AbortSignal,
): Promise<FindingTraceRow[]> {
  const condition = ofFinding(key)
  const isAfter = '(storedMs, receivedMs, id) < ({storedMs: Int64}, {receivedMs: Int64}, {id: String})'
  return selectRows<FindingTraceRow>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS id, count() AS occurrenceCount, max(${SEEN_UNIX_NANO}) AS lastSeenUnixNano,
             min(tuple(stored_at, received_at)) AS first,
             toUnixTimestamp64Milli(first.1) AS storedMs, toUnixTimestamp64Milli(first.2) AS receivedMs
      FROM exceptions
      WHERE ${condition} AND trace_id != toFixedString('', 16) AND ${isCounting(condition)}
      GROUP BY trace_id ${after ? `HAVING ${isAfter}` : ''}
      ORDER BY storedMs DESC, receivedMs DESC, id DESC LIMIT {limit: UInt32}`,
    params: { ...findingParams(key), limit: key.limit, ...after },
    signal,
  })
}

/** Identifies a trace of a finding. */
export type FindingTraceKey = Omit<FindingKey, 'variantIds'> & TraceKey

/**
 * Returns whether a finding of this workspace occurred in this trace. An exception is also of the findings that it was in once, so
 * that links stay valid. Those that it was stored with are in the row itself, and in a cluster on the shard of the trace.
 */
export async function selectFindingHasTrace(
  client: ClickHouseClient,
  key: FindingTraceKey,
  signal: AbortSignal,
): Promise<boolean> {
  const { workspaceId, findingIds } = key
  // The queries read few granules: a second thread would cost more than the read.
  const settings = { ...TRACE_READ_SETTINGS, max_threads: 1 }
  const variants = await selectRows<{ variantId: string; isStored: 0 | 1 }>(client, {
    query: `
      SELECT lower(hex(variant_id)) AS variantId, max(finding_id IN {findingIds: Array(FixedString(30))}) AS isStored
      FROM exceptions WHERE ${OF_TRACE_ID} GROUP BY variant_id`,
    params: { ...key },
    signal,
    settings,
    trace: key,
  })
  if (variants.length === 0 || variants.some(({ isStored }) => isStored === 1)) return variants.length > 0
  const moved = await selectRows(client, {
    query: `
      SELECT 1 FROM finding_variants
      WHERE workspace_id = {workspaceId: String} AND hasAny(finding_ids, {findingIds: Array(FixedString(30))})
        AND variant_id IN (${VARIANT_IDS}) LIMIT 1`,
    params: { workspaceId, findingIds, variantIds: variants.map(({ variantId }) => variantId) },
    signal,
    settings,
  })
  return moved.length > 0
}
