import { REFUSED, REPEATED, type Refusals } from '../../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'

/** Requests with spans whose spans are missing, wholly or in part. */
export interface TraceLosses {
  /** Accepted requests that are dead letters or were discarded, besides those that replays have stored since. */
  readonly deadLettered: number
  /** Refused requests, as far as their counts are copied from Redis. */
  readonly refused: Refusals
}

const HOUR_MS = 3_600_000

/**
 * Returns the losses among the requests of a workspace that arrived in a period, in Unix ms. Refused requests are counted by
 * hours, so those of the first and the last hour are included whole.
 */
export async function selectTraceLosses(
  client: ClickHouseClient,
  { workspaceId, fromMs, toMs }: { workspaceId: string; fromMs: number; toMs: number },
  signal: AbortSignal,
): Promise<TraceLosses> {
  const arrived =
    'received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})'
  const [row] = await selectRows<{ lost: string; stored: string; final: string; repeated: string }>(client, {
    query: `
      SELECT
        (SELECT sum(length(refused) + length(rejections)) FROM ingest_log
         WHERE workspace_id = {workspaceId: String} AND ${arrived} AND signal = 'traces' AND replayed_at = 0) AS lost,
        (SELECT uniqExact(job_id, job_index) FROM dead_letters
         WHERE workspace_id = {workspaceId: String} AND ${arrived} AND queue = 'spans' AND attempt > 0 AND outcome = 'stored')
          AS stored,
        (SELECT (sumIf(requests, NOT is_repeated), sumIf(requests, is_repeated)) FROM (
           SELECT outcome IN {repeatedOutcomes: Array(String)} AS is_repeated, max(requests) AS requests FROM request_counts
           WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND startsWith(outcome, {refused: String})
             AND received_hour BETWEEN toDateTime({fromHour: UInt32}) AND toDateTime({toHour: UInt32})
           GROUP BY surface_id, received_hour, outcome)) AS counted, counted.1 AS final, counted.2 AS repeated`,
    params: {
      workspaceId,
      fromMs,
      toMs,
      fromHour: startOfHour(fromMs),
      toHour: startOfHour(toMs),
      refused: REFUSED,
      repeatedOutcomes: REPEATED,
    },
    signal,
    // Each part is a few rows of a period.
    settings: { max_threads: 1 },
  })
  return {
    deadLettered: Math.max(Number(row?.lost ?? 0) - Number(row?.stored ?? 0), 0),
    refused: { final: Number(row?.final ?? 0), repeated: Number(row?.repeated ?? 0) },
  }
}

/** Returns the Unix time of the start of an hour in seconds. */
function startOfHour(unixMs: number): number {
  return (Math.floor(unixMs / HOUR_MS) * HOUR_MS) / 1_000
}
