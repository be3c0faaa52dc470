import { HOUR_MS } from '../../../../schemas/units.ts'
import { REFUSED, REPEATED } from '../../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'

/** Requests of a surface that were not stored, or spans that were deleted, among what arrived at the time of a trace. */
export interface TraceLoss {
  readonly cause: 'dead_lettered' | 'refused' | 'expired' | 'erased'
  readonly surfaceId: string
  /** Whether the surface has sent spans of the trace, and the loss is from at most a minute before or after they arrived. */
  readonly isNear: boolean
  /** Requests, or deleted spans. Dead letters that replays have stored since are left out. */
  readonly count: number
  /** Further refused requests, which their clients send again. */
  readonly sentAgain: number
  /** When they arrived, in Unix ms. Refused requests and deleted spans are counted by whole hours. */
  readonly fromMs: number
  readonly toMs: number
}

/** Most entries of the log that are compared with their dead letters. If there are more, each counts as a loss. */
const COMPARED_ENTRIES = 1_000
/** Most losses of a kind that are returned, the near ones first, then the largest. */
const LOSSES = 100
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
): Promise<TraceLoss[]> {
  const losses = await Promise.all([
    selectLost(client, period, signal),
    selectRefused(client, period, signal),
    selectDeleted(client, period, signal),
  ])
  return losses.flat()
}

/** An entry of the log of a batch that has not stored all requests of a surface. */
interface LossEntry {
  readonly jobId: string
  readonly surfaceId: string
  readonly commit: string
  readonly receivedMs: string
  readonly isNear: number
  /** Rejected records of stored requests by reason. */
  readonly rejected: Readonly<Record<string, string>>
  /** Dead letters that are kept, and that are not, by reason. */
  readonly kept: Readonly<Record<string, string>>
  readonly discarded: Readonly<Record<string, string>>
}

/**
 * Returns the lost requests that no replay has stored. Each is compared with its own letter. An entry of the log counts all
 * requests, also those without a receipt.
 */
async function selectLost(client: ClickHouseClient, period: LossPeriod, signal: AbortSignal): Promise<TraceLoss[]> {
  const entries = await selectRows<LossEntry>(client, {
    query: `
      SELECT job_id AS jobId, surface_id AS surfaceId, hex(receipt_commit) AS commit, rejected,
             dead_lettered AS kept, ingest_log.discarded AS discarded, toUnixTimestamp64Milli(received_at) AS receivedMs,
             has({surfaceIds: Array(String)}, surface_id) AND received_at
               BETWEEN fromUnixTimestamp64Milli({nearFromMs: Int64}) AND fromUnixTimestamp64Milli({nearToMs: Int64}) AS isNear
      FROM ingest_log
      WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND replayed_at = 0
        AND (notEmpty(dead_lettered) OR notEmpty(ingest_log.discarded))
        AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})
      ORDER BY isNear DESC LIMIT {limit: UInt32}`,
    params: { ...period, limit: COMPARED_ENTRIES + 1 },
    signal,
    settings: ONE_THREAD,
  })
  const groups = entries.map(lostRequests)
  // A further entry may be a loss whatever these are, so none of them is taken for less than one.
  if (entries.length > COMPARED_ENTRIES) return lossesOf(groups, ({ kept, discarded }) => Math.max(kept + discarded, 1))
  const lost = groups.filter(({ kept, discarded }) => kept + discarded > 0)
  if (lost.length === 0) return []
  const resolvedOf = await selectResolvedLetters(client, period, lost, signal)
  return lossesOf(lost, group => Math.max(group.kept - resolvedOf(group), 0) + group.discarded)
}

/** Returns what is left of the requests of each surface. */
function lossesOf(groups: readonly LostRequests[], countOf: (group: LostRequests) => number): TraceLoss[] {
  const losses = groups.map((group): TraceLoss => {
    const { surfaceId, isNear, receivedMs } = group
    const count = countOf(group)
    return { cause: 'dead_lettered', surfaceId, isNear, count, sentAgain: 0, fromMs: receivedMs, toMs: receivedMs }
  })
  return joinLosses(
    losses.filter(({ count }) => count > 0),
    (a, b) => a + b,
  )
}

/** Joins losses of the same cause and surface, near ones apart from others. `joinCounts` joins their counts. */
export function joinLosses(losses: readonly TraceLoss[], joinCounts: (a: number, b: number) => number): TraceLoss[] {
  const joined = new Map<string, TraceLoss>()
  for (const loss of losses) {
    const key = `${loss.cause} ${loss.surfaceId} ${loss.isNear}`
    const known = joined.get(key)
    const sum = known && {
      count: joinCounts(known.count, loss.count),
      sentAgain: joinCounts(known.sentAgain, loss.sentAgain),
      fromMs: Math.min(known.fromMs, loss.fromMs),
      toMs: Math.max(known.toMs, loss.toMs),
    }
    joined.set(key, { ...loss, ...sum })
  }
  return [...joined.values()]
}

/** Letters for occurrences over a limit are left out: their spans are stored. */
function lostRequests({ rejected, kept, discarded, receivedMs, isNear, ...group }: LossEntry): LostRequests {
  const reasons = Object.keys(rejected)
  const onlyWhole =
    reasons.some(reason => OVER_LIMIT_LABELS.includes(reason)) &&
    reasons.every(reason => WITHOUT_SPAN_LABELS.includes(reason))
  const countOf = (letters: Readonly<Record<string, string>>) =>
    Object.entries(letters).reduce(
      (sum, [reason, count]) => (onlyWhole && reason === 'records_rejected' ? sum : sum + Number(count)),
      0,
    )
  const counts = { kept: countOf(kept), discarded: countOf(discarded) }
  return { ...group, receivedMs: Number(receivedMs), isNear: isNear === 1, onlyWhole, ...counts }
}

/** Losses of a surface in whole hours. */
interface HoursRow {
  readonly cause: TraceLoss['cause']
  readonly surfaceId: string
  readonly isNear: number
  readonly losses: string
  readonly sentAgain: string
  readonly fromS: number
  readonly toS: number
}

/** Columns of {@link HoursRow} besides what is counted. */
const HOURS_COLUMNS = `
  surface_id AS surfaceId, min(toUnixTimestamp(received_hour)) AS fromS, max(toUnixTimestamp(received_hour)) AS toS,
  has({surfaceIds: Array(String)}, surface_id) AND received_hour
    BETWEEN toDateTime({nearFromHour: UInt32}) AND toDateTime({nearToHour: UInt32}) AS isNear`

/** Returns refused requests, as far as their counts are copied from Redis. */
function selectRefused(client: ClickHouseClient, period: LossPeriod, signal: AbortSignal): Promise<TraceLoss[]> {
  const query = `
    SELECT 'refused' AS cause, ${HOURS_COLUMNS}, sumIf(requests, NOT is_repeated) AS losses,
           sumIf(requests, is_repeated) AS sentAgain
    FROM (
      SELECT surface_id, received_hour, outcome IN {repeatedOutcomes: Array(String)} AS is_repeated,
             max(requests) AS requests
      FROM request_counts
      WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND startsWith(outcome, {refused: String})
        AND received_hour BETWEEN toDateTime({fromHour: UInt32}) AND toDateTime({toHour: UInt32})
      GROUP BY surface_id, received_hour, outcome)
    GROUP BY surfaceId, isNear ORDER BY isNear DESC, losses DESC, sentAgain DESC LIMIT ${LOSSES}`
  return selectByHours(client, query, period, signal)
}

function selectDeleted(client: ClickHouseClient, period: LossPeriod, signal: AbortSignal): Promise<TraceLoss[]> {
  const query = `
    SELECT if(reason = 'expired', 'expired', 'erased') AS cause, ${HOURS_COLUMNS}, sum(rows) AS losses, 0 AS sentAgain
    FROM deleted_rows
    WHERE workspace_id = {workspaceId: String} AND table_name = 'spans'
      AND received_hour BETWEEN toDateTime({fromHour: UInt32}) - 3600 AND toDateTime({toHour: UInt32}) + 3600
    GROUP BY cause, surfaceId, isNear HAVING losses > 0 ORDER BY isNear DESC, losses DESC LIMIT ${LOSSES} BY cause`
  return selectByHours(client, query, period, signal)
}

async function selectByHours(
  client: ClickHouseClient,
  query: string,
  { workspaceId, surfaceIds, fromMs, toMs, nearFromMs, nearToMs }: LossPeriod,
  signal: AbortSignal,
): Promise<TraceLoss[]> {
  const params = {
    ...{ workspaceId, surfaceIds, refused: REFUSED, repeatedOutcomes: REPEATED },
    ...{ fromHour: startOfHour(fromMs), toHour: startOfHour(toMs) },
    ...{ nearFromHour: startOfHour(nearFromMs), nearToHour: startOfHour(nearToMs) },
  }
  const rows = await selectRows<HoursRow>(client, { query, params, signal, settings: ONE_THREAD })
  return rows.map(({ cause, surfaceId, isNear, losses, sentAgain, fromS, toS }) => ({
    ...{ cause, surfaceId, isNear: isNear === 1, count: Number(losses), sentAgain: Number(sentAgain) },
    ...{ fromMs: fromS * 1_000, toMs: toS * 1_000 + HOUR_MS },
  }))
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
  /** Surfaces of the trace, and the part of the period in which their losses are near. */
  readonly surfaceIds: readonly string[]
  readonly nearFromMs: number
  readonly nearToMs: number
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
  readonly receivedMs: number
  readonly isNear: boolean
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
