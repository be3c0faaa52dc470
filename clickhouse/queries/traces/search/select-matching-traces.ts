import type { ClickHouseClient } from '../../../client.ts'
import { type BoundCondition, selectRows } from '../../../select.ts'
import { TRACE_READ_SETTINGS } from '../span-row.ts'
import { IN_TRACE_IDS } from './trace-filter.ts'

const DAY_MS = 86_400_000

/** Returns which of the traces have a span that meets the condition. */
export async function selectMatchingTraces(
  client: ClickHouseClient,
  { workspaceId, traceIds, condition }: { workspaceId: string; traceIds: readonly string[]; condition: BoundCondition },
  signal: AbortSignal,
): Promise<string[]> {
  const rows = await selectRows<{ traceId: string }>(client, {
    query: `
      SELECT DISTINCT lower(hex(trace_id)) AS traceId FROM spans
      WHERE workspace_id = {workspaceId: String} AND ${IN_TRACE_IDS} AND ${condition.sql}`,
    params: { ...condition.params, workspaceId, traceIds },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
  return rows.map(({ traceId }) => traceId)
}

/**
 * Returns up to `limit` traces with a span that meets a condition on an attribute and that arrived on the day of `fromNano`, the
 * day before it, or later. The index of attributes leaves few rows to read if the value is rare (docs/decisions/031).
 */
export async function selectTracesOfAttribute(
  client: ClickHouseClient,
  search: { workspaceId: string; condition: BoundCondition; fromNano: bigint; limit: number },
  signal: AbortSignal,
): Promise<string[]> {
  const { workspaceId, condition, fromNano, limit } = search
  const fromDay = new Date(Math.max(Number(fromNano / 1_000_000n) - DAY_MS, 0)).toISOString().slice(0, 10)
  const rows = await selectRows<{ traceId: string }>(client, {
    query: `
      SELECT DISTINCT lower(hex(trace_id)) AS traceId FROM spans
      WHERE workspace_id = {workspaceId: String} AND ${condition.sql}
        AND toDate(received_at) >= {fromDay: Date}
      LIMIT {limit: UInt32}`,
    params: { ...condition.params, workspaceId, fromDay, limit },
    signal,
  })
  return rows.map(({ traceId }) => traceId)
}
