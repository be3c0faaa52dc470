import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectEdges } from '../../../clickhouse/queries/services/select-edges.ts'
import { selectServices, selectTagValues } from '../../../clickhouse/queries/traces/search/select-tags.ts'
import {
  type JaegerSearchQuery,
  jaegerDependencies,
  jaegerDependenciesQuerySchema,
  jaegerOperations,
  jaegerOperationsQuerySchema,
  jaegerSearch,
  jaegerSearchQuerySchema,
  jaegerServiceOperations,
  jaegerServices,
  jaegerTrace,
} from '../../../schemas/http/grafana/jaeger.ts'
import { EDGES_MAX } from '../../../schemas/http/service-map.ts'
import { DAY_MS, MIB, MINUTE_MS } from '../../../schemas/units.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import { invalid, type Outcome, okJson } from '../../http/outcome.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { SERVICES } from '../../services/range.ts'
import {
  filterOfConditions,
  goDurationNanos,
  type SpanCondition,
  searchRange,
} from '../../traces/search/search-filter.ts'
import { recentTraces, runTraceSearch, searchTraces, type TraceSearch } from '../../traces/search/search-traces.ts'
import { loadFirstSpans, WHOLE_TRACE } from '../../traces/spans/load-all-spans.ts'
import { type ReadTraceDeps, readTrace } from '../read-trace.ts'
import { jaegerAnswer, jaegerTraceJson } from './present-trace.ts'

interface Deps extends GuardedRouteDeps, ReadTraceDeps {
  /** Slots for searches of traces. */
  readonly traceSearches: Pick<FairSlots, 'run'>
  /** Slots for reads of the statistics of spans. */
  readonly serviceReads: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Limits of all traces of a search together. */
const FOUND_TRACES = { spans: WHOLE_TRACE.spans, bytes: 6 * MIB }
/** Services are those of spans that arrived since so long ago, because the interface has no time for them. */
const SERVICES_OF_MS = 7 * DAY_MS
const TIMES = ['start', 'end'] as const
/** Most names of a list. */
const NAMES_MAX = 1_000

/** Returns the routes of the interface of Jaeger (docs/api/other-tools.md#jaeger). */
export function jaegerRoutes(deps: Deps): readonly Route[] {
  return [traceRoute(deps), searchRoute(deps), servicesRoute(deps), ...operationRoutes(deps), dependenciesRoute(deps)]
}

function traceRoute(deps: Deps): Route {
  return guardedRoute(deps, jaegerTrace, {
    resource: TRACES,
    reply: okJson,
    async run({ workspaceId, param, deadline }) {
      const traceId = param('traceId').toLowerCase().padStart(32, '0')
      if (!/^[0-9a-f]{32}$/.test(traceId)) return notFound(TRACES)
      const found = await readTrace(deps, { key: { workspaceId, traceId }, form: 'jaeger' }, deadline)
      return found === undefined ? notFound(TRACES) : { ok: true, value: found }
    },
  })
}

function searchRoute(deps: Deps): Route {
  const { clickhouse, traceSearches, now } = deps
  return guardedRoute(deps, jaegerSearch, {
    resource: TRACES,
    query: jaegerSearchQuerySchema,
    reply: okJson,
    async run({ workspaceId, query, deadline }) {
      const conditions = conditionsOf(query)
      if (!conditions.ok) return conditions
      const filter = filterOfConditions(conditions.value, searchRange(query.start, query.end))
      if (!filter.ok) return filter
      const search = { workspaceId, filter: filter.value, after: undefined, limit: query.limit, nowMs: now() }
      // The slot is held while the spans are read, because the text of the traces stays in memory meanwhile.
      const read = () => findTraces(clickhouse, search, deadline)
      const found = await runTraceSearch(traceSearches, { workspaceId, deadline }, TIMES, read)
      return found.ok ? { ok: true, value: jaegerAnswer(found.value) } : found
    },
  })
}

/** Returns the traces of a search in JSON, which share the limits of a response. */
async function findTraces(clickhouse: ClickHouseClient, search: TraceSearch, deadline: AbortSignal): Promise<string[]> {
  const { workspaceId } = search
  const { traces } = await searchTraces(clickhouse, search, deadline)
  const limits = {
    spans: Math.floor(FOUND_TRACES.spans / Math.max(traces.length, 1)),
    bytes: Math.floor(FOUND_TRACES.bytes / Math.max(traces.length, 1)),
  }
  const shown: string[] = []
  for (const { traceId } of traces) {
    const trace = await loadFirstSpans(clickhouse, { workspaceId, traceId }, limits, deadline)
    if (trace !== undefined) shown.push(jaegerTraceJson(trace))
  }
  return shown
}

function servicesRoute(deps: Deps): Route {
  const { clickhouse, traceSearches, now } = deps
  return guardedRoute(deps, jaegerServices, {
    resource: TRACES,
    async run({ workspaceId, deadline }) {
      const nowMs = now()
      const range = { ...searchRange(undefined, undefined), arrivedSinceMs: nowMs - SERVICES_OF_MS }
      const search = { workspaceId, ...range, limit: NAMES_MAX, nowMs }
      const read = () => selectServices(clickhouse, search, deadline)
      const services = await runTraceSearch(traceSearches, { workspaceId, deadline }, TIMES, read)
      return services.ok ? answer(services.value.filter(service => service !== '')) : services
    },
  })
}

function operationRoutes(deps: Deps): Route[] {
  return [
    guardedRoute(deps, jaegerServiceOperations, {
      resource: TRACES,
      async run({ workspaceId, param, deadline }) {
        const names = await readOperations(deps, workspaceId, param('service'), deadline)
        return names.ok ? answer(names.value) : names
      },
    }),
    guardedRoute(deps, jaegerOperations, {
      resource: TRACES,
      query: jaegerOperationsQuerySchema,
      async run({ workspaceId, query: { service }, deadline }) {
        const names = await readOperations(deps, workspaceId, service, deadline)
        return names.ok ? answer(names.value.map(name => ({ name, spanKind: '' }))) : names
      },
    }),
  ]
}

function dependenciesRoute(deps: Deps): Route {
  const { clickhouse, serviceReads, now } = deps
  return guardedRoute(deps, jaegerDependencies, {
    resource: SERVICES,
    query: jaegerDependenciesQuerySchema,
    async run({ workspaceId, query: { endTs = now(), lookback = DAY_MS }, deadline }) {
      const minutes = (ms: number) => Math.max(60 * Math.ceil(ms / MINUTE_MS), 0)
      const filter = { workspaceId, fromSeconds: minutes(endTs - lookback), toSeconds: minutes(endTs) }
      const read = () => selectEdges(clickhouse, filter, EDGES_MAX, deadline)
      const calls = new Map<string, number>()
      for (const { caller, callee, hasCaller, hasCallee, count } of await serviceReads.run(
        workspaceId,
        read,
        deadline,
      )) {
        if (!hasCaller || !hasCallee) continue
        const key = JSON.stringify([caller, callee])
        calls.set(key, (calls.get(key) ?? 0) + Number(count))
      }
      return answer(
        [...calls].map(([key, callCount]) => {
          const [parent, child] = JSON.parse(key) as [string, string]
          return { parent, child, callCount }
        }),
      )
    },
  })
}

function readOperations(
  { clickhouse, traceSearches, now }: Deps,
  workspaceId: string,
  service: string,
  deadline: AbortSignal,
) {
  return runTraceSearch(traceSearches, { workspaceId, deadline }, TIMES, async () => {
    const search = { workspaceId, service, range: searchRange(undefined, undefined), nowMs: now() }
    const traceIds = await recentTraces(clickhouse, search, deadline)
    const source = { workspaceId, traceIds, limit: NAMES_MAX, serviceName: service }
    return selectTagValues(clickhouse, { ...source, key: undefined }, deadline)
  })
}

function answer(data: readonly unknown[]): Outcome<unknown> {
  return { ok: true, value: { data, total: data.length, limit: 0, offset: 0, errors: null } }
}

function conditionsOf({
  service,
  operation,
  tags,
  minDuration,
  maxDuration,
}: JaegerSearchQuery): Outcome<readonly SpanCondition[]> {
  if (maxDuration) return invalid('maxDuration is not supported: leave it out')
  const conditions: SpanCondition[] = [{ of: 'service', value: service }]
  if (operation) conditions.push({ of: 'name', value: operation })
  for (const [key, value] of Object.entries(tags ? tagsOf(tags) : {})) {
    if (value === undefined) return invalid('tags must be a JSON object of texts, such as {"http.route":"/cart"}')
    conditions.push(
      key === 'error' && value === 'true' ? { of: 'status', value: 'error' } : { of: 'attribute', key, value },
    )
  }
  if (minDuration) {
    const nanos = goDurationNanos(minDuration)
    if (nanos === undefined) return invalid('minDuration must be a duration, such as 100ms')
    conditions.push({ of: 'minDuration', nanos })
  }
  return { ok: true, value: conditions }
}

/** Returns tags by their keys. A tag that is not text, or everything that is not an object of tags, is undefined. */
function tagsOf(json: string): Readonly<Record<string, string | undefined>> {
  try {
    const tags: unknown = JSON.parse(json)
    if (typeof tags === 'object' && tags !== null && !Array.isArray(tags)) {
      return Object.fromEntries(
        Object.entries(tags).map(([key, value]) => [key, typeof value === 'object' ? undefined : String(value)]),
      )
    }
  } catch {}
  return { tags: undefined }
}
