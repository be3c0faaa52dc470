import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { WideningWindows } from '../../widening-windows.ts'
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

const windows = new WideningWindows()

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

/** Returns the newest traces of a page. */
function selectNewest(
  client: ClickHouseClient,
  search: MatchingSearch,
  signal: AbortSignal,
): Promise<readonly TracePosition[]> {
  const { filter, after, limit, nowMs } = search
  const now = BigInt(nowMs) * 1_000_000n
  const beginsAt = [now, filter.toNano, ...(after === undefined ? [] : [BigInt(after.atUnixNano)])].reduce(earlier)
  // The buckets of a session are known, and few in any period.
  const lengths = filter.sessionId === undefined ? [...WINDOWS_NANOS, beginsAt] : [beginsAt]
  return windows.find({
    key: keyOf(search),
    starts: [...new Set(lengths.map(length => later(beginsAt - length, filter.fromNano)))],
    limit,
    select: since => selectSince(client, search, since, signal),
    timeOf: ({ atUnixNano }) => BigInt(atUnixNano),
  })
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
