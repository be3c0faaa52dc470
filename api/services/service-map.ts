import type { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type EdgeRow, selectEdges } from '../../clickhouse/queries/services/select-edges.ts'
import {
  CALL_KINDS,
  EDGES_MAX,
  readServiceMap,
  readServiceMapQuerySchema,
  type ServiceEdge,
  type ServiceMap,
} from '../../schemas/http/service-map.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../shared/http/route.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { filterOf, presentRange, rangeOf, SERVICES } from './range.ts'
import { milliseconds, NO_SPANS, presentRates, selectRates } from './rates.ts'

/** Dependencies of reads of the map. */
interface MapDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
  /** Slots for reads of the statistics of spans. */
  readonly serviceReads: Pick<FairSlots, 'run'>
}

/** Returns the route that reads which service calls which (docs/api/services.md#map). */
export function serviceMapRoute(deps: MapDeps & GuardedRouteDeps): Route {
  return guardedRoute(deps, readServiceMap, {
    resource: SERVICES,
    query: readServiceMapQuerySchema,
    run: request => readMap(deps, request),
  })
}

/** Reads services and the calls between them. With a service, its calls, and the services at their other ends. */
export async function readMap(
  { clickhouse, now, serviceReads }: MapDeps,
  { workspaceId, query, deadline }: CallerRead<z.infer<typeof readServiceMapQuerySchema>>,
): Promise<Outcome<ServiceMap>> {
  const range = rangeOf(query, now())
  if (!range.ok) return range
  const { service: serviceName } = query
  const filter = filterOf(workspaceId, range.value, query)
  const read = () =>
    Promise.all([
      selectEdges(clickhouse, { ...filter, serviceName }, EDGES_MAX + 1, deadline),
      selectRates(clickhouse, filter, deadline),
    ])
  const [rows, rates] = await serviceReads.run(workspaceId, read, deadline)
  const edges = rows.slice(0, EDGES_MAX).map(presentEdge)
  const shown = new Set([serviceName, ...edges.flatMap(({ caller, callee }) => [caller, callee])])
  const services = rates
    .filter(row => serviceName === undefined || shown.has(row.serviceName))
    .map(row => ({
      name: row.serviceName,
      counts: row.isEntry ? ('entries' as const) : ('all' as const),
      ...presentRates(row),
    }))
  return { ok: true, value: { ...presentRange(range.value), services, edges, isCut: rows.length > EDGES_MAX } }
}

function presentEdge(row: EdgeRow): ServiceEdge {
  const { caller, callee, hasCaller, hasCallee, system, peerName, count, errors } = row
  const ofCaller = { durationSum: row.callerDurationSum, p50: row.callerP50, p95: row.callerP95, p99: row.callerP99 }
  return {
    caller: hasCaller ? caller : null,
    callee: hasCallee ? callee : null,
    kind: CALL_KINDS.find(kind => kind === row.kind) ?? 'other',
    peer: system === '' && peerName === '' ? null : { system, name: peerName },
    calls: Number(count),
    errors: Number(errors),
    durationMs: presentRates(hasCallee ? row : NO_SPANS).durationMs,
    callerDurationMs: presentRates(hasCaller ? { ...row, ...ofCaller } : NO_SPANS).durationMs,
    slowest: { traceId: row.slowestTraceId, durationMs: milliseconds(Number(row.slowest)) },
  }
}
