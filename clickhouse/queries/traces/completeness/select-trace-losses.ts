import { HOUR_MS } from '../../../../schemas/units.ts'
import { REFUSED, REPEATED, type Refusals } from '../../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'

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

/** Most entries of the log that are compared with their dead letters. If there are more, each counts as a lost request. */
const COMPARED_ENTRIES = 1_000
/** Each query reads a few rows of a period. */
const ONE_THREAD = { max_threads: 1 }

/**
 * Returns the losses among what arrived in a workspace in a period. Refused requests and deleted spans are counted by hours.
 * Deleted spans of the hour before and of the hour after are included, because the times of a trace are those of the spans that
 * it still has. Three queries at once: one of three parts took ClickHouse twice as long, most of it before it read anything.
 */
export async function selectTraceLosses(
  client: ClickHouseClient,
  period: LossPeriod,
  signal: AbortSignal,
): Promise<TraceLosses> {
  const [deadLettered, refused, deleted] = await Promise.all([
    countLost(client, period, signal),
    selectRefused(client, period, signal),
    selectDeleted(client, period, signal),
  ])
  return { deadLettered, refused, ...deleted }
}

/** An entry of the log of a batch that has not stored all requests of a surface. */
interface LossEntry {
  readonly jobId: string
  readonly surfaceId: string
  readonly commit: string
  /** Rejected records of stored requests by reason. */
  readonly rejected: Readonly<Record<string, string>>
  /** Dead letters that are kept, and that are not, by reason. */
  readonly kept: Readonly<Record<string, string>>
  readonly discarded: Readonly<Record<string, string>>
}

/**
 * Returns how many lost requests no replay has stored. Each is compared with its own letter. An entry of the log counts all
 * requests, also those without a receipt.
 */
async function countLost(client: ClickHouseClient, period: LossPeriod, signal: AbortSignal): Promise<number> {
  const entries = await selectRows<LossEntry>(client, {
    query: `
      SELECT job_id AS jobId, surface_id AS surfaceId, hex(receipt_commit) AS commit, rejected,
             dead_lettered AS kept, ingest_log.discarded AS discarded
      FROM ingest_log
      WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND replayed_at = 0
        AND (notEmpty(dead_lettered) OR notEmpty(ingest_log.discarded))
        AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})
      LIMIT {limit: UInt32}`,
    params: { ...period, limit: COMPARED_ENTRIES + 1 },
    signal,
    settings: ONE_THREAD,
  })
  if (entries.length > COMPARED_ENTRIES) return entries.length
  const groups = entries.map(lostRequests).filter(({ kept, discarded }) => kept + discarded > 0)
  if (groups.length === 0) return 0
  const resolvedOf = await selectResolvedLetters(client, period, groups, signal)
  return groups.reduce((sum, group) => sum + Math.max(group.kept - resolvedOf(group), 0) + group.discarded, 0)
}

/** Letters for occurrences over a limit are left out: their spans are stored. */
function lostRequests({ jobId, surfaceId, commit, rejected, kept, discarded }: LossEntry): LostRequests {
  const reasons = Object.keys(rejected)
  const onlyWhole =
    reasons.some(reason => OVER_LIMIT_LABELS.includes(reason)) &&
    reasons.every(reason => WITHOUT_SPAN_LABELS.includes(reason))
  const countOf = (letters: Readonly<Record<string, string>>) =>
    Object.entries(letters).reduce(
      (sum, [reason, count]) => (onlyWhole && reason === 'records_rejected' ? sum : sum + Number(count)),
      0,
    )
  return { jobId, surfaceId, commit, onlyWhole, kept: countOf(kept), discarded: countOf(discarded) }
}

async function selectRefused(
  client: ClickHouseClient,
  { workspaceId, ...period }: LossPeriod,
  signal: AbortSignal,
): Promise<Refusals> {
  const [row] = await selectRows<{ final: string; repeated: string }>(client, {
    query: `
      SELECT sumIf(requests, NOT is_repeated) AS final, sumIf(requests, is_repeated) AS repeated FROM (
        SELECT outcome IN {repeatedOutcomes: Array(String)} AS is_repeated, max(requests) AS requests FROM request_counts
        WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND startsWith(outcome, {refused: String})
          AND received_hour BETWEEN toDateTime({fromHour: UInt32}) AND toDateTime({toHour: UInt32})
        GROUP BY surface_id, received_hour, outcome)`,
    params: { workspaceId, ...hoursOf(period), refused: REFUSED, repeatedOutcomes: REPEATED },
    signal,
    settings: ONE_THREAD,
  })
  return { final: Number(row?.final ?? 0), repeated: Number(row?.repeated ?? 0) }
}

async function selectDeleted(
  client: ClickHouseClient,
  { workspaceId, ...period }: LossPeriod,
  signal: AbortSignal,
): Promise<Pick<TraceLosses, 'expired' | 'erased'>> {
  const [row] = await selectRows<{ expired: string; erased: string }>(client, {
    query: `
      SELECT sumIf(rows, reason = 'expired') AS expired, sumIf(rows, reason != 'expired') AS erased FROM deleted_rows
      WHERE workspace_id = {workspaceId: String} AND table_name = 'spans'
        AND received_hour BETWEEN toDateTime({fromHour: UInt32}) - 3600 AND toDateTime({toHour: UInt32}) + 3600`,
    params: { workspaceId, ...hoursOf(period) },
    signal,
    settings: ONE_THREAD,
  })
  return { expired: Number(row?.expired ?? 0), erased: Number(row?.erased ?? 0) }
}

function hoursOf({ fromMs, toMs }: Omit<LossPeriod, 'workspaceId'>) {
  return { fromHour: startOfHour(fromMs), toHour: startOfHour(toMs) }
}

/** Returns the Unix time of the start of an hour in seconds. */
function startOfHour(unixMs: number): number {
  return (Math.floor(unixMs / HOUR_MS) * HOUR_MS) / 1_000
}

/** A period of a workspace, in Unix ms. */
interface LossPeriod {
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
interface LostRequests {
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

/** Reasons for which something is left out, but no span. A replay would leave it out again. */
const OVER_LIMIT_LABELS = ['exceptions_over_limit', 'findings_over_limit', 'json_value_left_out']
/** The same, and what is only counted. */
const WITHOUT_SPAN_LABELS = [...OVER_LIMIT_LABELS, 'session_id_too_long']

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
async function selectResolvedLetters(
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
