import { LRUCache } from 'lru-cache'
import { type ClickHouseClient, readsTooMuch } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { OF_TRACES } from '../span-row.ts'
import { AT, boundTimes, IN_TIME } from './time-range.ts'
import { spanCondition, type TraceFilter } from './trace-filter.ts'

/** Position of a trace in a list: when its newest matching span started, or arrived if that was earlier. */
export interface TracePosition {
  /** 32 hex digits. */
  readonly traceId: string
  /** Unix ns, decimal. */
  readonly atUnixNano: string
}

/** Selects traces. */
interface MatchingSearch {
  readonly workspaceId: string
  readonly filter: TraceFilter
  /** The trace after which the result begins. */
  readonly after: TracePosition | undefined
  readonly limit: number
  readonly nowMs: number
}

/** Traces with a matching span, the newest first. */
interface MatchingTraces {
  readonly found: readonly TracePosition[]
  /** Where the next ones begin, or undefined if there are none. */
  readonly next: TracePosition | undefined
}

const MINUTE_NANOS = 60_000_000_000n
const HOUR_NANOS = 60n * MINUTE_NANOS
const DAY_NANOS = 24n * HOUR_NANOS
/** Periods before the start of a page, tried in this order. If one contains a full page, older buckets are not read. */
const WINDOWS_NANOS = [MINUTE_NANOS, HOUR_NANOS, DAY_NANOS, 7n * DAY_NANOS]

/**
 * The window that was enough for a search the last time, by workspace and filter: people and dashboards repeat their searches, and
 * each window that is not enough costs 8 ms. Whatever it is, the result is the same.
 */
const enough = new LRUCache<string, number>({ max: 1_000 })
/** A filter with longer texts is not remembered. */
const KEY_CHARACTERS = 1_000

/**
 * Returns the traces with a span that matches, the newest first. The position of a trace is that of its newest matching span, so
 * that each trace is in a list once: a page leaves out what has a matching span before its start.
 */
export async function selectMatchingTraces(
  client: ClickHouseClient,
  search: MatchingSearch,
  signal: AbortSignal,
): Promise<MatchingTraces> {
  const { after, limit } = search
  const found = await selectNewest(client, search, signal)
  const next = found.length === limit ? found.at(-1) : undefined
  if (after === undefined || found.length === 0) return { found, next }
  const foundIds = found.map(({ traceId }) => traceId)
  const shown = await selectBefore(client, { ...search, after, traceIds: foundIds }, signal)
  return { found: found.filter(({ traceId }) => !shown.has(traceId)), next }
}

/** Returns the newest traces of a page, by the window that was enough the last time or the next ones. */
async function selectNewest(
  client: ClickHouseClient,
  search: MatchingSearch,
  signal: AbortSignal,
): Promise<TracePosition[]> {
  const key = keyOf(search)
  const first = enough.get(key) ?? 0
  try {
    const { found, window } = await selectInWindows(client, search, first, signal)
    if (key.length <= KEY_CHARACTERS) enough.set(key, window)
    return found
  } catch (error) {
    enough.delete(key)
    if (first === 0 || !readsTooMuch(error)) throw error
    // There may be more now than there was.
    return (await selectInWindows(client, search, 0, signal)).found
  }
}

/** Returns the newest traces of a page, from the first window that contains it, and the shortest that would have. */
async function selectInWindows(
  client: ClickHouseClient,
  search: MatchingSearch,
  first: number,
  signal: AbortSignal,
): Promise<{ readonly found: TracePosition[]; readonly window: number }> {
  const { filter, after, limit, nowMs } = search
  const now = BigInt(nowMs) * 1_000_000n
  const beginsAt = [now, filter.toNano, ...(after === undefined ? [] : [BigInt(after.atUnixNano)])].reduce(earlier)
  // The buckets of a session are known, and few in any period.
  const windows = filter.sessionId === undefined ? [...WINDOWS_NANOS, beginsAt] : [beginsAt]
  const begins = windows.map(window => later(beginsAt - window, filter.fromNano))
  let found: TracePosition[] = []
  for (const since of begins.slice(first)) {
    found = await selectSince(client, search, since, signal)
    if (found.length === limit || since === filter.fromNano) break
  }
  const oldest = found.length === limit ? BigInt(found.at(-1)?.atUnixNano ?? 0) : filter.fromNano
  return { found, window: begins.findIndex(since => since <= oldest) }
}

const later = (a: bigint, b: bigint) => (a > b ? a : b)

/** Returns what the number of matching traces in a window depends on, but for the time. */
function keyOf({ workspaceId, limit, filter }: MatchingSearch): string {
  const { fromNano, toNano, minDurationNanos, ...conditions } = filter
  return JSON.stringify([workspaceId, limit, String(minDurationNanos), conditions])
}

const earlier = (a: bigint, b: bigint) => (a < b ? a : b)

/** In the order of a list, spans after a position are smaller than it. */
const POSITION = '({atUnixNano: UInt64}, toFixedString(unhex({traceId: String}), 16))'

function selectSince(
  client: ClickHouseClient,
  { workspaceId, filter, after, limit }: MatchingSearch,
  sinceNano: bigint,
  signal: AbortSignal,
): Promise<TracePosition[]> {
  const matching = spanCondition(workspaceId, filter)
  const next = after === undefined ? '' : `AND ${AT} <= {atUnixNano: UInt64} AND (${AT}, trace_id) < ${POSITION}`
  const until = after === undefined ? filter.toNano : earlier(filter.toNano, BigInt(after.atUnixNano) + 1n)
  return selectRows<TracePosition>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS traceId, max(${AT}) AS atUnixNano
      FROM spans WHERE ${matching.sql} AND ${IN_TIME} ${next}
      GROUP BY trace_id ORDER BY atUnixNano DESC, trace_id DESC LIMIT {limit: UInt32}`,
    params: { ...matching.params, ...boundTimes(sinceNano, until), limit, ...after },
    signal,
  })
}

/** Returns which of the traces have a matching span at or before a position in the order of the list. */
async function selectBefore(
  client: ClickHouseClient,
  { workspaceId, filter, after, traceIds }: MatchingSearch & { readonly after: TracePosition; traceIds: string[] },
  signal: AbortSignal,
): Promise<Set<string>> {
  const matching = spanCondition(workspaceId, filter)
  const rows = await selectRows<{ traceId: string }>(client, {
    query: `
      SELECT DISTINCT lower(hex(trace_id)) AS traceId FROM spans
      WHERE ${matching.sql} AND ${OF_TRACES} AND ${IN_TIME} AND (${AT}, trace_id) >= ${POSITION}`,
    params: { ...matching.params, ...boundTimes(BigInt(after.atUnixNano), filter.toNano), traceIds, ...after },
    signal,
  })
  return new Set(rows.map(({ traceId }) => traceId))
}
