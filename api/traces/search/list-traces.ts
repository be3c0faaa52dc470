import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import { listTraces } from '../../../schemas/http/traces/operations.ts'
import { SPAN_STATUSES } from '../../../schemas/http/traces/schemas.ts'
import { type ListTracesQuery, listTracesQuerySchema, type TracesPage } from '../../../schemas/http/traces/search.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { unixNanoOf } from '../../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { TRACES } from '../../http/resource.ts'
import { presentFoundTrace } from './present-found-trace.ts'
import { runTraceSearch } from './run-search.ts'
import { SPAN_NANO_MAX } from './search-filter.ts'
import { searchTraces } from './search-traces.ts'
import { decodeTraceCursor, encodeTraceCursor } from './trace-cursor.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for searches of traces. */
  readonly traceSearches: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Returns the route that lists the traces of a workspace, the newest first (docs/api/traces.md#traces). */
export function listTracesRoute(deps: Deps): Route {
  return guardedRoute(deps, listTraces, {
    resource: TRACES,
    query: listTracesQuerySchema,
    run: request => readTracesPage(deps, request),
  })
}

/** Reads a page of traces. */
export async function readTracesPage(
  deps: Omit<Deps, keyof GuardedRouteDeps>,
  { workspaceId, query, deadline }: CallerRead<ListTracesQuery>,
): Promise<Outcome<TracesPage>> {
  const { limit, cursor, ...filters } = query
  const list = ['traces', workspaceId, Object.entries(filters).sort()]
  const after = decodeTraceCursor(list, cursor)
  if (!after.ok) return after
  const search = { workspaceId, filter: filterOf(filters), after: after.value, limit, nowMs: deps.now() }
  const run = () => searchTraces(deps.clickhouse, search, deadline)
  const found = await runTraceSearch(deps.traceSearches, { workspaceId, deadline }, ['from', 'to'], run)
  if (!found.ok) return found
  const { traces, next } = found.value
  const nextCursor = next === undefined ? null : encodeTraceCursor(list, next)
  return { ok: true, value: { traces: traces.map(presentFoundTrace), nextCursor } }
}

function filterOf(query: Omit<ListTracesQuery, 'limit' | 'cursor'>): TraceFilter {
  const { service, name, status, minDurationMs, attribute, session, hasFinding, from, to } = query
  return {
    serviceName: service,
    spanName: name,
    status: status === undefined ? undefined : SPAN_STATUSES.indexOf(status),
    minDurationNanos: minDurationMs === undefined ? undefined : BigInt(minDurationMs) * 1_000_000n,
    attribute,
    sessionId: session,
    hasFinding: hasFinding === 'true',
    fromNano: from === undefined ? 0n : unixNanoOf(from, SPAN_NANO_MAX),
    toNano: to === undefined ? SPAN_NANO_MAX : unixNanoOf(to, SPAN_NANO_MAX),
  }
}
