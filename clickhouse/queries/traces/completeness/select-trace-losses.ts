import { REFUSED, REPEATED, type Refusals } from '../../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import {
  type LossPeriod,
  type LostRequests,
  OVER_LIMIT_LABELS,
  selectResolvedLetters,
  WITHOUT_SPAN_LABELS,
} from './select-resolved-letters.ts'

/** Spans that are missing, as far as the service knows. */
export interface TraceLosses {
  /** Accepted requests that are dead letters or were discarded, besides those that replays have stored since. */
  readonly deadLettered: number
  /** Refused requests, as far as their counts are copied from Redis. */
  readonly refused: Refusals
  /** Stored spans that left with a shorter retention of the workspace. */
  readonly expired: number
  /** Stored spans that were erased with a person or a session. */
  readonly erased: number
}

const HOUR_MS = 3_600_000
/** Most groups of lost requests that are compared with their dead letters. All others count as lost. */
const COMPARED_GROUPS = 1_000

type LostGroup = readonly [
  jobId: string,
  surfaceId: string,
  commit: string,
  onlyWhole: number | boolean,
  kept: string,
  discarded: string,
]

interface LossesRow {
  readonly lost: readonly [groups: readonly LostGroup[], count: string]
  readonly counted: readonly [final: string, repeated: string]
  readonly deleted: readonly [expired: string, erased: string]
}

/**
 * Returns the losses among what arrived in a workspace in a period. Refused requests and deleted spans are counted by hours.
 * Deleted spans of the hour before and of the hour after are included, because the times of a trace are those of the spans that
 * it still has.
 */
export async function selectTraceLosses(
  client: ClickHouseClient,
  period: LossPeriod,
  signal: AbortSignal,
): Promise<TraceLosses> {
  const [row] = await selectRows<LossesRow>(client, {
    query: `
      SELECT
        (SELECT (groupArray(${COMPARED_GROUPS})((job_id, surface_id, commit, only_whole, kept, discarded)), count())
         FROM (${LOST_REQUESTS})) AS lost,
        (SELECT (sumIf(requests, NOT is_repeated), sumIf(requests, is_repeated)) FROM (
           SELECT outcome IN {repeatedOutcomes: Array(String)} AS is_repeated, max(requests) AS requests FROM request_counts
           WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND startsWith(outcome, {refused: String})
             AND received_hour BETWEEN toDateTime({fromHour: UInt32}) AND toDateTime({toHour: UInt32})
           GROUP BY surface_id, received_hour, outcome)) AS counted,
        (SELECT (sumIf(rows, reason = 'expired'), sumIf(rows, reason != 'expired')) FROM deleted_rows
         WHERE workspace_id = {workspaceId: String} AND table_name = 'spans'
           AND received_hour BETWEEN toDateTime({fromHour: UInt32}) - 3600 AND toDateTime({toHour: UInt32}) + 3600) AS deleted`,
    params: {
      ...period,
      overLimit: OVER_LIMIT_LABELS,
      withoutSpan: WITHOUT_SPAN_LABELS,
      fromHour: startOfHour(period.fromMs),
      toHour: startOfHour(period.toMs),
      refused: REFUSED,
      repeatedOutcomes: REPEATED,
    },
    signal,
    // Each part is a few rows of a period. Tuples are arrays.
    settings: { max_threads: 1, output_format_json_named_tuples_as_objects: 0 },
  })
  const [final = 0, repeated = 0] = row?.counted ?? []
  const [expired = 0, erased = 0] = row?.deleted ?? []
  return {
    deadLettered: await countLost(client, period, row, signal),
    refused: { final: Number(final), repeated: Number(repeated) },
    expired: Number(expired),
    erased: Number(erased),
  }
}

/**
 * Requests by job, surface and commit that are not stored, or not with all their spans. An entry of the log counts all
 * requests, also those without a receipt. Letters for occurrences over a limit are left out: their spans are stored.
 */
const LOST_REQUESTS = `
  SELECT job_id, surface_id, hex(receipt_commit) AS commit,
         hasAny(CAST(mapKeys(rejected), 'Array(String)'), {overLimit: Array(String)})
           AND hasAll({withoutSpan: Array(String)}, CAST(mapKeys(rejected), 'Array(String)')) AS only_whole,
         arraySum(mapValues(dead_lettered)) - if(only_whole, dead_lettered['records_rejected'], 0) AS kept,
         arraySum(mapValues(discarded)) - if(only_whole, discarded['records_rejected'], 0) AS discarded
  FROM ingest_log
  WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND replayed_at = 0 AND kept + discarded > 0
    AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})`

/** Returns how many lost requests no replay has stored. Each is compared with its own letter. */
async function countLost(
  client: ClickHouseClient,
  period: LossPeriod,
  row: LossesRow | undefined,
  signal: AbortSignal,
): Promise<number> {
  const [found = [], count = 0] = row?.lost ?? []
  if (found.length === 0) return 0
  const groups = found.map(
    ([jobId, surfaceId, commit, onlyWhole, kept, discarded]): LostRequests => ({
      ...{ jobId, surfaceId, commit, onlyWhole: Boolean(onlyWhole) },
      ...{ kept: Number(kept), discarded: Number(discarded) },
    }),
  )
  const uncompared = Number(count) - groups.length
  if (uncompared > 0) return uncompared
  const resolvedOf = await selectResolvedLetters(client, period, groups, signal)
  return groups.reduce((sum, group) => sum + Math.max(group.kept - resolvedOf(group), 0) + group.discarded, 0)
}

/** Returns the Unix time of the start of an hour in seconds. */
function startOfHour(unixMs: number): number {
  return (Math.floor(unixMs / HOUR_MS) * HOUR_MS) / 1_000
}
