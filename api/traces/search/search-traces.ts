import { type ClickHouseClient, readsTooMuch } from '../../../clickhouse/client.ts'
import {
  selectMatchingTraces,
  type TracePosition,
} from '../../../clickhouse/queries/traces/search/select-matching-traces.ts'
import {
  selectTraceTotals,
  type TraceTotalsRow,
} from '../../../clickhouse/queries/traces/search/select-trace-totals.ts'
import type { TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { CallerRead } from '../../http/guarded-route.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'
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

/** Searches traces. */
export async function searchTraces(
  client: ClickHouseClient,
  search: TraceSearch,
  signal: AbortSignal,
): Promise<FoundTraces> {
  const { found, next } = await selectMatchingTraces(client, search, signal)
  if (found.length === 0) return { traces: [], next }
  const traceIds = found.map(({ traceId }) => traceId)
  const rows = await selectTraceTotals(client, { workspaceId: search.workspaceId, traceIds }, signal)
  const rowOf = new Map(rows.map(row => [row.traceId, row]))
  return { traces: traceIds.flatMap(traceId => rowOf.get(traceId) ?? []), next }
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
  const search = { workspaceId, filter: filter.value, after: undefined, limit: RECENT_TRACES, nowMs }
  const { found } = await selectMatchingTraces(client, search, signal)
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
