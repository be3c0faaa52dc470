import type { z } from 'zod'
import {
  selectServices,
  selectTagKeys,
  selectTagValues,
} from '../../../clickhouse/queries/traces/search/select-tags.ts'
import type { TraceTotalsRow } from '../../../clickhouse/queries/traces/search/select-trace-totals.ts'
import {
  TEMPO_BUILD_INFO,
  tempoBuildInfo,
  tempoEcho,
  tempoSearch,
  tempoSearchQuerySchema,
  tempoTags,
  tempoTagsQuerySchema,
  tempoTagsV2,
  tempoTrace,
  tempoTraceV2,
  tempoValues,
  tempoValuesV2,
} from '../../../schemas/http/grafana/tempo.ts'
import { SPAN_STATUSES } from '../../../schemas/http/traces/schemas.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import { NO_SNIFF, NO_STORE, type Reply, type Route } from '../../../shared/http/route.ts'
import { millisecondsBetween } from '../../http/format-time.ts'
import { type GuardedRequest, type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import { invalid, type Outcome, okJson } from '../../http/outcome.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import {
  filterOfConditions,
  goDurationNanos,
  type SpanCondition,
  searchRange,
} from '../../traces/search/search-filter.ts'
import { recentTraces, runTraceSearch, searchTraces } from '../../traces/search/search-traces.ts'
import { type ReadTraceDeps, readTrace } from '../read-trace.ts'
import type { TraceForm } from '../render-trace.ts'
import { parseTags, parseTraceQl } from './parse-search.ts'

interface Deps extends GuardedRouteDeps, ReadTraceDeps {
  /** Slots for searches of traces. */
  readonly traceSearches: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Most values of a list. */
const VALUES_MAX = 1_000
const INTRINSICS = ['duration', 'name', 'status']
const TIMES = ['start', 'end'] as const

/** Returns the routes of the interface of Tempo (docs/api/other-tools.md#tempo). */
export function tempoRoutes(deps: Deps): readonly Route[] {
  return [
    traceRoute(deps, tempoTrace, { protobuf: 'tempoProtobuf', json: 'tempoJson' }),
    traceRoute(deps, tempoTraceV2, { protobuf: 'tempoV2Protobuf', json: 'tempoV2Json' }),
    searchRoute(deps),
    ...tagRoutes(deps),
    guardedRoute(deps, tempoEcho, {
      resource: TRACES,
      reply: () => ({ status: 200, headers: [['content-type', 'text/plain'], NO_SNIFF, NO_STORE], body: 'echo' }),
      run: async () => ({ ok: true, value: undefined }),
    }),
    guardedRoute(deps, tempoBuildInfo, {
      resource: TRACES,
      run: async () => ({ ok: true, value: TEMPO_BUILD_INFO }),
    }),
  ]
}

function traceRoute(
  deps: Deps,
  operation: typeof tempoTrace,
  { protobuf, json }: Record<'protobuf' | 'json', TraceForm>,
): Route {
  return guardedRoute(deps, operation, {
    resource: TRACES,
    reply: (found: Reply) => found,
    async run({ workspaceId, param, deadline, accept }): Promise<Outcome<Reply>> {
      const traceId = param('traceId').toLowerCase().padStart(32, '0')
      if (!/^[0-9a-f]{32}$/.test(traceId)) return notFound(TRACES)
      const isProtobuf = accept?.includes('application/protobuf') ?? false
      const form = isProtobuf ? protobuf : json
      const found = await readTrace(deps, { key: { workspaceId, traceId }, form }, deadline)
      if (found === undefined) return notFound(TRACES)
      return { ok: true, value: isProtobuf ? protobufReply(found) : okJson(found) }
    },
  })
}

function protobufReply(body: Uint8Array): Reply {
  return { status: 200, headers: [['content-type', 'application/protobuf'], NO_SNIFF, NO_STORE], body }
}

function searchRoute(deps: Deps): Route {
  return guardedRoute(deps, tempoSearch, {
    resource: TRACES,
    query: tempoSearchQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<unknown>> {
      const conditions = conditionsOf(query)
      if (!conditions.ok) return conditions
      const filter = filterOfConditions(conditions.value, searchRange(query.start, query.end))
      if (!filter.ok) return filter
      const search = { workspaceId, filter: filter.value, after: undefined, limit: query.limit, nowMs: deps.now() }
      const run = () => searchTraces(deps.clickhouse, search, deadline)
      const found = await runTraceSearch(deps.traceSearches, { workspaceId, deadline }, TIMES, run)
      return found.ok ? { ok: true, value: { traces: found.value.traces.map(presentTrace), metrics: {} } } : found
    },
  })
}

/** Returns the routes that list tags and their values, each in two forms. */
function tagRoutes(deps: Deps): Route[] {
  const tagsRoute = (operation: typeof tempoTags, run: (request: TagRequest) => Promise<Outcome<unknown>>) =>
    guardedRoute(deps, operation, { resource: TRACES, query: tempoTagsQuerySchema, run })
  return [
    tagsRoute(tempoTags, async request =>
      withValue(await tagKeys(deps, request), tags => ({ tagNames: ['service.name', ...INTRINSICS, ...tags] })),
    ),
    tagsRoute(tempoTagsV2, async request =>
      withValue(await tagKeys(deps, request), tags => ({
        scopes: [
          { name: 'resource', tags: ['service.name'] },
          { name: 'span', tags },
          { name: 'intrinsic', tags: INTRINSICS },
        ],
      })),
    ),
    tagsRoute(tempoValues, async request =>
      withValue(await tagValues(deps, request, request.param('tag')), values => ({ tagValues: values })),
    ),
    tagsRoute(tempoValuesV2, async request => {
      const tag = request.param('tag')
      const type = /^(span:)?status$/.test(tag) ? 'keyword' : 'string'
      const found = await tagValues(deps, request, tag)
      return withValue(found, values => ({ tagValues: values.map(value => ({ type, value })) }))
    }),
  ]
}

type TagRequest = GuardedRequest<z.infer<typeof tempoTagsQuerySchema>>

function recentTraceIds({ clickhouse, now }: Deps, { workspaceId, query: { start, end }, deadline }: TagRequest) {
  const search = { workspaceId, service: undefined, range: searchRange(start, end), nowMs: now() }
  return recentTraces(clickhouse, search, deadline)
}

function tagKeys(deps: Deps, request: TagRequest): Promise<Outcome<string[]>> {
  const { workspaceId, deadline } = request
  return runTraceSearch(deps.traceSearches, request, TIMES, async () => {
    const traceIds = await recentTraceIds(deps, request)
    return selectTagKeys(
      deps.clickhouse,
      { workspaceId, traceIds, limit: VALUES_MAX, serviceName: undefined },
      deadline,
    )
  })
}

async function tagValues(deps: Deps, request: TagRequest, tag: string): Promise<Outcome<readonly string[]>> {
  const { workspaceId, deadline } = request
  const { start, end } = request.query
  if (/^(span:)?status$/.test(tag)) return { ok: true, value: SPAN_STATUSES.map(status => status.toLowerCase()) }
  return runTraceSearch(deps.traceSearches, request, TIMES, async () => {
    if (/^(resource)?\.?service\.name$/.test(tag)) {
      const search = { workspaceId, ...searchRange(start, end), limit: VALUES_MAX, nowMs: deps.now() }
      return selectServices(deps.clickhouse, search, deadline)
    }
    const key = /^(span:)?name$/.test(tag) ? undefined : tag.replace(/^(span)?\./, '')
    const source = { workspaceId, traceIds: await recentTraceIds(deps, request), limit: VALUES_MAX }
    return selectTagValues(deps.clickhouse, { ...source, key, serviceName: undefined }, deadline)
  })
}

/** Returns the outcome with what is made of its value. */
function withValue<T>(outcome: Outcome<T>, of: (value: T) => unknown): Outcome<unknown> {
  return outcome.ok ? { ok: true, value: of(outcome.value) } : outcome
}

function conditionsOf({
  q,
  tags,
  minDuration,
  maxDuration,
}: {
  q?: string | undefined
  tags?: string | undefined
  minDuration?: string | undefined
  maxDuration?: string | undefined
}): Outcome<readonly SpanCondition[]> {
  if (maxDuration) return invalid('maxDuration is not supported: leave it out')
  const ofQuery = q ? parseTraceQl(q) : ({ ok: true, value: [] } as const)
  if (!ofQuery.ok) return ofQuery
  const ofTags = tags ? parseTags(tags) : ({ ok: true, value: [] } as const)
  if (!ofTags.ok) return ofTags
  const nanos = minDuration ? goDurationNanos(minDuration) : undefined
  if (minDuration && nanos === undefined) return invalid('minDuration must be a duration, such as 100ms')
  const ofDuration: SpanCondition[] = nanos === undefined ? [] : [{ of: 'minDuration', nanos }]
  return { ok: true, value: [...ofQuery.value, ...ofTags.value, ...ofDuration] }
}

function presentTrace({ traceId, first, startUnixNano, endUnixNano }: TraceTotalsRow) {
  const [, , rootTraceName, rootServiceName] = first
  return {
    traceID: traceId,
    rootServiceName,
    rootTraceName,
    startTimeUnixNano: startUnixNano,
    durationMs: Math.round(millisecondsBetween(BigInt(startUnixNano), BigInt(endUnixNano))),
  }
}
