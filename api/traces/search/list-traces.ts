import { z } from 'zod'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { TracePosition } from '../../../clickhouse/queries/traces/search/select-matching-traces.ts'
import type { TraceTotalsRow } from '../../../clickhouse/queries/traces/search/select-trace-totals.ts'
import type { TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import { listTraces } from '../../../schemas/http/traces/operations.ts'
import { SPAN_STATUSES } from '../../../schemas/http/traces/schemas.ts'
import {
  type FoundTrace,
  type ListTracesQuery,
  listTracesQuerySchema,
  type TracesPage,
} from '../../../schemas/http/traces/search.ts'
import { attributeConditionsOf } from '../../../schemas/http/traces/where.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { decodeCursor, digestOf, encodeCursor, type ListIdentity, OTHER_LIST } from '../../http/cursor.ts'
import { millisecondsBetween, unixNanoOf } from '../../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { TRACES } from '../../http/resource.ts'
import { NO_SPAN } from '../spans/present-span.ts'
import { SPAN_NANO_MAX } from './search-filter.ts'
import { runTraceSearch, searchTraces } from './search-traces.ts'

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
  const { service, name, status, minDurationMs, session, hasFinding, from, to } = query
  return {
    serviceName: service,
    spanName: name,
    status: status === undefined ? undefined : SPAN_STATUSES.indexOf(status),
    minDurationNanos: minDurationMs === undefined ? undefined : BigInt(minDurationMs) * 1_000_000n,
    attributes: attributeConditionsOf(query),
    sessionId: session,
    hasFinding: hasFinding === 'true',
    fromNano: from === undefined ? 0n : unixNanoOf(from, SPAN_NANO_MAX),
    toNano: to === undefined ? SPAN_NANO_MAX : unixNanoOf(to, SPAN_NANO_MAX),
  }
}

const unixNano = z
  .string()
  .regex(/^\d{1,19}$/)
  .refine(digits => BigInt(digits) <= SPAN_NANO_MAX)

const cursorSchema = z
  .tuple([z.string(), unixNano, z.string().regex(/^[0-9a-f]{32}$/)])
  .transform(([list, atUnixNano, traceId]) => ({ list, atUnixNano, traceId }))

/** Encodes the position after which the next page of a list begins. */
function encodeTraceCursor(list: ListIdentity, { atUnixNano, traceId }: TracePosition): string {
  return encodeCursor([digestOf(list), atUnixNano, traceId])
}

/** Decodes a cursor, and refuses one that another list has returned. */
function decodeTraceCursor(list: ListIdentity, text: string | undefined): Outcome<TracePosition | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok || cursor.value === undefined) return cursor
  const { list: digest, atUnixNano, traceId } = cursor.value
  return digest === digestOf(list) ? { ok: true, value: { atUnixNano, traceId } } : OTHER_LIST
}

/** Returns a trace as a list shows it (docs/api/traces.md#traces). */
function presentFoundTrace(row: TraceTotalsRow): FoundTrace {
  const [spanId, parentSpanId, name, serviceName, httpRoute, httpStatusCode] = row.first
  return {
    traceId: row.traceId,
    firstSpan: {
      spanId,
      ...(parentSpanId !== NO_SPAN && { parentSpanId }),
      ...{ name, serviceName },
      ...(httpRoute !== '' && { httpRoute }),
      ...(httpStatusCode > 0 && { httpStatusCode }),
    },
    startedAtUnixNano: row.startUnixNano,
    endedAtUnixNano: row.endUnixNano,
    wallDurationMs: millisecondsBetween(BigInt(row.startUnixNano), BigInt(row.endUnixNano)),
    spanCount: Number(row.spanCount),
    errorCount: Number(row.errorCount),
    services: [...row.services],
    serviceCount: Number(row.serviceCount),
  }
}
