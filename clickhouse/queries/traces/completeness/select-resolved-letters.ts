import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'

/** A period of a workspace, in Unix ms. */
export interface LossPeriod {
  readonly workspaceId: string
  readonly fromMs: number
  readonly toMs: number
  /**
   * A letter counts as replayed if that was stored before this time. One that is replayed while the spans are read may be stored
   * after them.
   */
  readonly replayedBeforeMs: number
}

/** Requests of one job, surface and group commit that were not stored, or not with all their spans. */
export interface LostRequests {
  readonly jobId: string
  readonly surfaceId: string
  /** Id of the group commit, in upper-case hex; zeros if the requests have no receipts. */
  readonly commit: string
  /** Whether `kept` and `discarded` leave out the letters of requests without some of their records. */
  readonly onlyWhole: boolean
  /** Dead letters that are kept. */
  readonly kept: number
  readonly discarded: number
}

/** Reasons for which only an occurrence is left out, whose span is stored. A replay would leave it out again. */
export const OVER_LIMIT_LABELS = ['exceptions_over_limit', 'findings_over_limit']
/** The same, and what is only counted. */
export const WITHOUT_SPAN_LABELS = [...OVER_LIMIT_LABELS, 'session_id_too_long']

/** A request arrives at most so long after the first one of its group commit. */
const LATER_MS = 15_000

interface ResolvedRow {
  readonly jobId: string
  readonly surfaceId: string
  readonly commit: string
  readonly replayed: string
  readonly overLimit: string
}

/** Returns a function that returns how many of the kept letters of a group are no loss: replayed and stored, or over a limit. */
export async function selectResolvedLetters(
  client: ClickHouseClient,
  { workspaceId, fromMs, toMs, replayedBeforeMs }: LossPeriod,
  groups: readonly LostRequests[],
  signal: AbortSignal,
): Promise<(group: LostRequests) => number> {
  const rows = await selectRows<ResolvedRow>(client, {
    query: `
      SELECT job_id AS jobId, surface_id AS surfaceId, hex(substring(receipt, 1, 12)) AS commit,
             countIf(is_replayed AND NOT is_over_limit) AS replayed, countIf(is_over_limit) AS overLimit
      FROM (
        SELECT job_id, surface_id, job_index, receipt, max(attempt > 0 AND outcome = 'stored'
                   AND indexed_at < fromUnixTimestamp64Milli({replayedBeforeMs: Int64})) AS is_replayed,
               max(attempt = 0 AND reason = 'records_rejected' AND hasAny(mapKeys(rejected), {overLimit: Array(String)})
                   AND hasAll({withoutSpan: Array(String)}, mapKeys(rejected))) AS is_over_limit
        FROM dead_letters
        WHERE workspace_id = {workspaceId: String} AND queue = 'traces' AND job_id IN {jobIds: Array(String)}
          AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})
        GROUP BY job_id, surface_id, job_index, receipt)
      GROUP BY jobId, surfaceId, commit`,
    params: {
      ...{ workspaceId, fromMs, toMs: toMs + LATER_MS, replayedBeforeMs },
      jobIds: [...new Set(groups.map(({ jobId }) => jobId))],
      overLimit: OVER_LIMIT_LABELS,
      withoutSpan: WITHOUT_SPAN_LABELS,
    },
    signal,
    settings: { max_threads: 1 },
  })
  const resolved = new Map(rows.map(row => [keyOf(row), row]))
  return group => {
    const { replayed = 0, overLimit = 0 } = resolved.get(keyOf(group)) ?? {}
    return Number(replayed) + (group.onlyWhole ? 0 : Number(overLimit))
  }
}

function keyOf({ jobId, surfaceId, commit }: Pick<LostRequests, 'jobId' | 'surfaceId' | 'commit'>): string {
  return `${jobId} ${surfaceId} ${commit}`
}
