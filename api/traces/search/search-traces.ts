import { type ClickHouseClient, readsTooMuch } from '../../../clickhouse/client.ts'
import { selectMatchingTraces } from '../../../clickhouse/queries/traces/search/select-matching-traces.ts'
import {
  selectTraceCandidates,
  type TracePosition,
} from '../../../clickhouse/queries/traces/search/select-trace-candidates.ts'
import {
  selectTraceTotals,
  type TraceTotalsRow,
} from '../../../clickhouse/queries/traces/search/select-trace-totals.ts'
import { spanCondition, type TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import type { BoundCondition } from '../../../clickhouse/select.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { CallerRead } from '../../http/guarded-route.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'
import { findRareValue } from './find-rare-value.ts'
import { filterOfConditions, type SearchRange } from './search-filter.ts'

/** Selects a page of traces. */
export interface TraceSearch {
  readonly workspaceId: string
  readonly filter: TraceFilter
  /** The trace after which the page begins. */
  readonly after: TracePosition | undefined
  readonly limit: number
  readonly nowMs: number
}

/** Traces that match, the newest first. */
interface FoundTraces {
  readonly traces: readonly TraceTotalsRow[]
  /** Where the search continues, or undefined if it has reached the end. */
  readonly next: TracePosition | undefined
}

/** Candidates that are looked at for one page, after as many as the page has room for. Each costs 8,192 rows of spans. */
const MORE_CANDIDATES = [100, 300, 600]

/**
 * Searches traces. It looks at the newest candidates, and at older ones while the page has room. If few of the first have the
 * requested attribute, the index of attributes is read: the traces of a rare value are the only candidates then. After
 * a number of candidates the search ends, so that a page with room may have a next one.
 */
export async function searchTraces(
  client: ClickHouseClient,
  search: TraceSearch,
  signal: AbortSignal,
): Promise<FoundTraces> {
  const { workspaceId, filter, after, limit, nowMs } = search
  const condition = spanCondition(filter)
  const traces: TraceTotalsRow[] = []
  let position = after
  for (const [round, candidates] of [limit, ...MORE_CANDIDATES].entries()) {
    const more = { workspaceId, filter, after: position, traceIds: undefined, limit: candidates, nowMs }
    const { found, next } = await selectTraceCandidates(client, more, signal)
    const room = limit - traces.length
    // If all candidates have room, their totals are read at once with the condition, unless that has an index.
    const isMatched = found.length > room || filter.attribute !== undefined
    const matching = isMatched ? await thatMatch(client, { workspaceId, found, condition }, signal) : found
    const shown = matching.slice(0, room)
    const unmatched = isMatched ? undefined : condition
    traces.push(...(await totalsOf(client, { workspaceId, shown, condition: unmatched }, signal)))
    position = shown.length < matching.length ? shown.at(-1) : next
    if (position === undefined || traces.length === limit) break
    // Asked once: a value that is frequent stays so, and the answer costs more than a round.
    if (round === 0 && condition !== undefined && filter.attribute !== undefined) {
      const rest = { ...search, after: position, limit: limit - traces.length }
      const rare = await findRareValue(client, rest, condition, signal)
      traces.push(...(await totalsOf(client, { workspaceId, shown: rare.found, condition: undefined }, signal)))
      position = rare.next
      if (position === undefined || !rare.isFrequent) break
    }
  }
  return { traces, next: position }
}

/** Returns the candidates that have a span which meets the condition, in their order. */
async function thatMatch(
  client: ClickHouseClient,
  candidates: { workspaceId: string; found: readonly TracePosition[]; condition: BoundCondition | undefined },
  signal: AbortSignal,
): Promise<readonly TracePosition[]> {
  const { workspaceId, found, condition } = candidates
  if (condition === undefined || found.length === 0) return found
  const traceIds = found.map(({ traceId }) => traceId)
  const matching = new Set(await selectMatchingTraces(client, { workspaceId, traceIds, condition }, signal))
  return found.filter(({ traceId }) => matching.has(traceId))
}

/** Returns the totals of those traces that have a span which meets the condition, in their order. */
async function totalsOf(
  client: ClickHouseClient,
  { workspaceId, shown, condition }: ShownTraces,
  signal: AbortSignal,
): Promise<TraceTotalsRow[]> {
  if (shown.length === 0) return []
  const traceIds = shown.map(({ traceId }) => traceId)
  const rows = await selectTraceTotals(client, { workspaceId, traceIds, condition }, signal)
  const rowOf = new Map(rows.map(row => [row.traceId, row]))
  return traceIds.flatMap(traceId => rowOf.get(traceId) ?? [])
}

interface ShownTraces {
  readonly workspaceId: string
  readonly shown: readonly TracePosition[]
  /** Undefined if all of them are known to meet it. */
  readonly condition: BoundCondition | undefined
}

/** Traces whose spans name the attributes, values and names that are offered for a search. */
const RECENT_TRACES = 300

/** Returns the newest traces of a time, of one service or of all. */
export async function recentTraces(
  client: ClickHouseClient,
  { workspaceId, service, range, nowMs }: RecentSearch,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const filter = filterOfConditions(service === undefined ? [] : [{ of: 'service', value: service }], range)
  if (!filter.ok) return []
  const search = { workspaceId, filter: filter.value, after: undefined, traceIds: undefined }
  const { found } = await selectTraceCandidates(client, { ...search, limit: RECENT_TRACES, nowMs }, signal)
  return found.map(({ traceId }) => traceId)
}

/** Selects recent traces. */
interface RecentSearch {
  readonly workspaceId: string
  readonly service: string | undefined
  readonly range: SearchRange
  readonly nowMs: number
}

/** Runs a search of traces in a slot of its workspace, and refuses one that reads too much. `times` are its parameters of time. */
export async function runTraceSearch<T>(
  traceSearches: Pick<FairSlots, 'run'>,
  { workspaceId, deadline }: Pick<CallerRead<never>, 'workspaceId' | 'deadline'>,
  times: readonly [string, string],
  search: () => Promise<T>,
): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await traceSearches.run(workspaceId, search, deadline) }
  } catch (error) {
    if (!readsTooMuch(error)) throw error
    const [from, to] = times
    return invalid(
      `the search would read too much: choose a shorter time by "${from}" and "${to}", or search fewer traces by another condition`,
    )
  }
}
