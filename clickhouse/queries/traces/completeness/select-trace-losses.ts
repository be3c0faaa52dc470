import { HOUR_MS } from '../../../../schemas/units.ts'
import { REFUSED, REPEATED } from '../../../../shared/queue/request-counts.ts'
import { EXCEPTIONS_NOT_STORED } from '../../../../shared/runtime/reason.ts'
import type { ClickHouseClient } from '../../../client.ts'
import { COUNTED_REQUESTS } from '../../../counted-requests.ts'
import { selectRows } from '../../../select.ts'

/** Requests of a surface that were not stored, or spans that were deleted, among what arrived at the time of a trace. */
export interface TraceLoss {
  readonly cause: 'dead_lettered' | 'refused' | 'expired' | 'erased' | 'dropped'
  readonly surfaceId: string
  /** The rule that has dropped the spans. */
  readonly rule?: string | undefined
  /** Whether the surface has sent spans of the trace, and the loss is from at most a minute before or after they arrived. */
  readonly isNear: boolean
  /** Requests, or deleted or dropped spans. Dead letters that replays have stored since are left out. */
  readonly count: number
  /** Further refused requests, which their clients send again. */
  readonly sentAgain: number
  /** When they arrived, in Unix ms. Refused requests and deleted spans are counted by whole hours. */
  readonly fromMs: number
  readonly toMs: number
}

/** Most rows that a query returns. If there are more, entries of the log are not compared with their letters. */
const ROWS = 1_000

/**
 * Returns the losses among what arrived in a workspace in a period. Refused requests and deleted spans are counted by hours.
 * Deleted spans of the hour before and of the hour after are included, because the times of a trace are those of the spans that
 * it still has. Two queries at once: most of their time passes before they read anything (bench/scenarios/trace-read.ts).
 */
export async function selectTraceLosses(
  client: ClickHouseClient,
  period: LossPeriod,
  signal: AbortSignal,
): Promise<TraceLoss[]> {
  const losses = await Promise.all([selectLost(client, period, signal), selectByHours(client, period, signal)])
  return losses.flat()
}

/** An entry of the log of a batch that has not stored all requests of a surface. */
interface LossEntry {
  readonly jobId: string
  readonly surfaceId: string
  readonly commit: string
  readonly receivedMs: string
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
  const query = `
    SELECT job_id AS jobId, surface_id AS surfaceId, hex(receipt_commit) AS commit, rejected, dead_lettered AS kept,
           ingest_log.discarded AS discarded, toUnixTimestamp64Milli(received_at) AS receivedMs
    FROM ingest_log
    WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND replayed_at = 0
      AND (notEmpty(dead_lettered) OR notEmpty(ingest_log.discarded))
      AND received_at BETWEEN fromUnixTimestamp64Milli({fromMs: Int64}) AND fromUnixTimestamp64Milli({toMs: Int64})`
  const near = isNear('surface_id', 'toUnixTimestamp64Milli(received_at)')
  const entries = await selectNearFirst<LossEntry>(client, query, { near, params: period }, signal)
  const groups = joinEntries(entries).map(lostRequests)
  const lossesOf = (lost: readonly LostRequests[], countOf: (group: LostRequests) => number) =>
    summed(lost.map(group => lossOf(period, 'dead_lettered', { ...group, count: countOf(group) })))
  // A further entry may be a loss whatever these are, so none of them is taken for less than one.
  if (entries.length > ROWS) return lossesOf(groups, ({ kept, discarded }) => Math.max(kept + discarded, 1))
  const lost = groups.filter(({ kept, discarded }) => kept + discarded > 0)
  if (lost.length === 0) return []
  const resolvedOf = await selectResolvedLetters(client, period, lost, signal)
  return lossesOf(lost, group => Math.max(group.kept - resolvedOf(group), 0) + group.discarded)
}

/**
 * Returns the rows of a query. If there are more than `ROWS`, it is read again in order: `first`, then the near ones. Rows are
 * summed and compared with the trace in this process: in the queries that took ClickHouse 19 ms of CPU instead of 11 (on a
 * busy machine), most of it before they read anything.
 */
async function selectNearFirst<T>(
  client: ClickHouseClient,
  query: string,
  { near, first = '', params }: { near: string; first?: string; params: LossPeriod },
  signal: AbortSignal,
): Promise<T[]> {
  const select = { params: { ...params }, signal, settings: { max_threads: 1 } }
  const read = (order: string) => selectRows<T>(client, { ...select, query: `${query} ${order} LIMIT ${ROWS + 1}` })
  const rows = await read('')
  if (rows.length <= ROWS) return rows
  return read(`ORDER BY ${first} (${near}) DESC`)
}

function isNear(surfaceId: string, at: string): string {
  return `has({surfaceIds: Array(String)}, ${surfaceId}) AND ${at} BETWEEN {nearFromMs: Int64} AND {nearToMs: Int64}`
}

/** Returns a loss, with whether it is near. `toMs` is exclusive unless it is `fromMs`. */
export function lossOf(
  { surfaceIds, nearFromMs, nearToMs }: Pick<LossPeriod, 'surfaceIds' | 'nearFromMs' | 'nearToMs'>,
  cause: TraceLoss['cause'],
  loss: Omit<TraceLoss, 'cause' | 'isNear' | 'sentAgain'> & { readonly sentAgain?: number },
): TraceLoss {
  const { surfaceId, count, sentAgain = 0, fromMs, toMs } = loss
  const isAtTime = fromMs <= nearToMs && (toMs > nearFromMs || fromMs >= nearFromMs)
  return { cause, surfaceId, isNear: isAtTime && surfaceIds.includes(surfaceId), count, sentAgain, fromMs, toMs }
}

function summed(losses: readonly TraceLoss[]): TraceLoss[] {
  const some = losses.filter(({ count, sentAgain }) => count + sentAgain > 0)
  return joinLosses(some, (a, b) => a + b)
}

/** Joins losses of the same cause and surface, near ones apart from others. `joinCounts` joins their counts. */
export function joinLosses(losses: readonly TraceLoss[], joinCounts: (a: number, b: number) => number): TraceLoss[] {
  const joined = new Map<string, TraceLoss>()
  for (const loss of losses) {
    const key = `${loss.cause} ${loss.surfaceId} ${loss.isNear} ${loss.rule}`
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

/** Joins the entries of the same requests: those with exceptions are logged later than the others of their commit. */
function joinEntries(entries: readonly LossEntry[]): LossEntry[] {
  const joined = new Map<string, LossEntry>()
  for (const entry of entries) {
    const known = joined.get(keyOf(entry))
    joined.set(keyOf(entry), known === undefined ? entry : joinEntry(known, entry))
  }
  return [...joined.values()]
}

function joinEntry(a: LossEntry, b: LossEntry): LossEntry {
  const sum = (name: 'rejected' | 'kept' | 'discarded') => {
    const counts = { ...a[name] }
    for (const [reason, count] of Object.entries(b[name]))
      counts[reason] = String(Number(counts[reason] ?? 0) + Number(count))
    return counts
  }
  const receivedMs = String(Math.min(Number(a.receivedMs), Number(b.receivedMs)))
  return { ...a, receivedMs, rejected: sum('rejected'), kept: sum('kept'), discarded: sum('discarded') }
}

/** Letters of exceptions, and for occurrences over a limit, are left out: their spans are stored. */
function lostRequests({ rejected, kept, discarded, receivedMs, ...group }: LossEntry): LostRequests {
  const reasons = Object.keys(rejected)
  const onlyWhole =
    reasons.some(reason => OVER_LIMIT_LABELS.includes(reason)) &&
    reasons.every(reason => WITHOUT_SPAN_LABELS.includes(reason))
  const isLoss = (reason: string) => reason !== EXCEPTIONS_NOT_STORED && !(onlyWhole && reason === 'records_rejected')
  const countOf = (letters: Readonly<Record<string, string>>) =>
    Object.entries(letters).reduce((sum, [reason, count]) => (isLoss(reason) ? sum + Number(count) : sum), 0)
  const counts = { kept: countOf(kept), discarded: countOf(discarded) }
  return { ...group, fromMs: Number(receivedMs), toMs: Number(receivedMs), onlyWhole, ...counts }
}

/** What a surface has lost in an hour. */
interface HourRow {
  readonly surfaceId: string
  /** Unix time of its start, in seconds. */
  readonly hour: number
  readonly reason: string
  readonly number: string
}

/**
 * Returns deleted spans, and refused requests as far as their counts are copied from Redis. If there are too many, those that
 * clients send again count last.
 */
async function selectByHours(client: ClickHouseClient, period: LossPeriod, signal: AbortSignal): Promise<TraceLoss[]> {
  const [fromHour, toHour, nearFromHour] = [period.fromMs, period.toMs, period.nearFromMs].map(startOfHour)
  const query = `
    SELECT * FROM (
      SELECT surface_id AS surfaceId, toUnixTimestamp(received_hour) AS hour, outcome AS reason, ${COUNTED_REQUESTS} AS number
      FROM request_counts
      WHERE workspace_id = {workspaceId: String} AND signal = 'traces' AND startsWith(outcome, '${REFUSED}')
        AND received_hour BETWEEN toDateTime({fromHour: UInt32}) AND toDateTime({toHour: UInt32})
      GROUP BY ALL
      UNION ALL
      SELECT surface_id, toUnixTimestamp(received_hour), reason, rows FROM deleted_rows
      WHERE workspace_id = {workspaceId: String} AND table_name = 'spans'
        AND received_hour BETWEEN toDateTime({fromHour: UInt32}) - 3600 AND toDateTime({toHour: UInt32}) + 3600)`
  const params = { ...period, fromHour, toHour, nearFromMs: (nearFromHour ?? 0) * 1_000 }
  const order = {
    first: `reason IN (${REPEATED.map(outcome => `'${outcome}'`).join(', ')}),`,
    near: isNear('surfaceId', 'toInt64(hour) * 1000'),
  }
  const rows = await selectNearFirst<HourRow>(client, query, { ...order, params }, signal)
  return summed(rows.map(row => hourLoss(period, row)))
}

function hourLoss(period: LossPeriod, { surfaceId, hour, reason, number }: HourRow): TraceLoss {
  const fromMs = hour * 1_000
  const isRepeated = (REPEATED as readonly string[]).includes(reason)
  const counts = { count: isRepeated ? 0 : Number(number), sentAgain: isRepeated ? Number(number) : 0 }
  return lossOf(period, causeOf(reason), { surfaceId, ...counts, fromMs, toMs: fromMs + HOUR_MS })
}

function causeOf(reason: string): TraceLoss['cause'] {
  if (reason.startsWith(REFUSED)) return 'refused'
  return reason === 'expired' ? 'expired' : 'erased'
}

/** Returns the Unix time of the start of an hour in seconds. */
function startOfHour(unixMs: number): number {
  return (Math.floor(unixMs / HOUR_MS) * HOUR_MS) / 1_000
}

/** A period of a workspace, in Unix ms. */
export interface LossPeriod {
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
  /** When the job's requests arrived. */
  readonly fromMs: number
  readonly toMs: number
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
