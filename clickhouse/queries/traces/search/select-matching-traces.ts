import type { ClickHouseClient } from '../../../client.ts'
import { type BoundCondition, selectRows } from '../../../select.ts'
import { TRACE_READ_SETTINGS } from '../span-row.ts'
import { IN_TRACE_IDS } from './trace-filter.ts'

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

/** Days of arrival, such as `2026-11-21`. */
interface ArrivalDays {
  readonly from: string
  /** Exclusive, or undefined for all later ones. */
  readonly to: string | undefined
}

/** Selects traces by an attribute. */
export interface TracesOfAttribute {
  readonly workspaceId: string
  readonly condition: BoundCondition
  readonly days: ArrivalDays
  /** The latest time of a span, as in `trace_services`: its start, or its arrival if that was earlier. Unix ns, decimal. */
  readonly untilUnixNano: string
  readonly limit: number
}

/**
 * Returns up to `limit` traces with a span that meets a condition on an attribute and that arrived on these days. The index of
 * attributes leaves few rows to read if the value is rare (docs/decisions/031).
 */
export async function selectTracesOfAttribute(
  client: ClickHouseClient,
  search: TracesOfAttribute,
  signal: AbortSignal,
): Promise<string[]> {
  const { workspaceId, condition, days, untilUnixNano, limit } = search
  const conditions = [
    'workspace_id = {workspaceId: String}',
    condition.sql,
    'least(start_time_unix_nano, toUInt64(toUnixTimestamp64Nano(received_at))) <= {untilUnixNano: UInt64}',
    'toDate(received_at) >= {fromDay: Date}',
    ...(days.to === undefined ? [] : ['toDate(received_at) < {toDay: Date}']),
  ]
  const rows = await selectRows<{ traceId: string }>(client, {
    query: `
      SELECT DISTINCT lower(hex(trace_id)) AS traceId FROM spans
      WHERE ${conditions.join(' AND ')} LIMIT {limit: UInt32}`,
    params: {
      ...condition.params,
      workspaceId,
      fromDay: days.from,
      toDay: days.to,
      untilUnixNano,
      limit,
    },
    signal,
  })
  return rows.map(({ traceId }) => traceId)
}
