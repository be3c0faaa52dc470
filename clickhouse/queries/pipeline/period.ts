import { HOUR_MS } from '../../../schemas/units.ts'
import type { TimeSteps } from '../../select.ts'

/** The requests of a workspace that arrived in a time. */
export interface Period {
  readonly workspaceId: string
  readonly steps: TimeSteps
}

/** Condition on the arrival of requests in a period (`periodParams`). */
export const ARRIVED = `workspace_id = {workspaceId: String} AND received_at >= fromUnixTimestamp64Milli({startMs: Int64})
  AND received_at < fromUnixTimestamp64Milli({endMs: Int64})`

/** The same of rows that have the hour of arrival: every hour of which the period has a part. */
export const HOUR_ARRIVED = `workspace_id = {workspaceId: String}
  AND received_hour >= fromUnixTimestamp64Milli({hourMs: Int64}, 'UTC') AND received_hour < fromUnixTimestamp64Milli({endMs: Int64}, 'UTC')`

/** Condition on rows of `ingest_log`: replays of dead letters are left out, because their requests are counted already. */
export const AS_SENT = "replayed_at = toDateTime64(0, 3, 'UTC')"

/** Returns the parameters of the conditions. */
export function periodParams({ workspaceId, steps: { startMs, stepMs, count } }: Period): Record<string, unknown> {
  const hourMs = Math.floor(startMs / HOUR_MS) * HOUR_MS
  return { workspaceId, startMs, stepMs, hourMs, endMs: startMs + count * stepMs }
}
