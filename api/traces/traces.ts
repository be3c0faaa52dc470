import type { z } from 'zod'
import { selectFindingsOfSpans } from '../../clickhouse/queries/traces/select-findings-of-spans.ts'
import type { TraceKey } from '../../clickhouse/read-connection.ts'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import { readCompleteness, readSpans, readTrace, readTraceColumns } from '../../schemas/http/traces/operations.ts'
import {
  askedTraceIdSchema,
  readSpansBodySchema,
  readTraceQuerySchema,
  type Spans,
  type TraceCompleteness,
} from '../../schemas/http/traces/schemas.ts'
import { MIB } from '../../schemas/units.ts'
import type { Route } from '../../shared/http/route.ts'
import { bodyRoute } from '../http/body-route.ts'
import { type CurrentFindingDeps, mergedFinding } from '../http/current-finding.ts'
import { queryDirectory } from '../http/directory.ts'
import { type GuardedRequest, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome, okJson, okReply, renderOutcome, replyUnlessUnavailable } from '../http/outcome.ts'
import { type PackedJson, type PackOptions, packedReply, packJson } from '../http/packed-json.ts'
import { withinShares } from '../http/read-shares.ts'
import { FINDINGS, notFound, type Resource, TRACES } from '../http/resource.ts'
import { assessCompleteness } from './completeness/assess-completeness.ts'
import { beginEvidence, type EvidenceDeps } from './completeness/load-evidence.ts'
import { type TraceReadDeps, useWaterfall } from './load-columns.ts'
import { loadTrace } from './load-trace.ts'
import { renderColumns } from './render-columns.ts'
import { type LoadedSpans, useSpans } from './spans/load-spans.ts'
import { presentSpan } from './spans/present-span.ts'

interface Deps extends GuardedRouteDeps, EvidenceDeps, SpanReadDeps, TraceReadDeps {
  readonly directory: EvidenceDeps['directory'] & SpanReadDeps['directory']
}

/** Returns the routes that read one trace. */
export function traceRoutes(deps: Deps): Route[] {
  return [readTraceRoute(deps), readTraceColumnsRoute(deps), readCompletenessRoute(deps), readSpansRoute(deps)]
}

/** Returns the route that reads every retained span of one trace of a finding (docs/api/findings.md#trace). */
function readTraceRoute(deps: Deps): Route {
  return guardedRoute(deps, readTrace, {
    resource: FINDINGS,
    query: readTraceQuerySchema,
    reply: okJson,
    async run({ workspaceId, param, query: { limit }, deadline }) {
      const finding = await mergedFinding(deps, { workspaceId, findingId: param('findingId') })
      const traceId = askedTraceIdSchema.safeParse(param('traceId')).data
      if (finding === undefined || traceId === undefined) return notFound(FINDINGS)
      const { findingIds } = finding
      const trace = await loadTrace(deps, { workspaceId, findingIds, traceId }, limit, deadline)
      return trace === undefined ? notFound(FINDINGS) : { ok: true, value: trace }
    },
  })
}

const PLAIN_BYTES = 24 * MIB

/** Returns the route that reads all spans of a trace as columns (docs/api/traces.md#trace-columns). */
function readTraceColumnsRoute(deps: Deps): Route {
  return guardedRoute(deps, readTraceColumns, {
    resource: TRACES,
    reply: packedReply,
    async run({ workspaceId, param, deadline, acceptsGzip }): Promise<Outcome<PackedJson>> {
      const traceId = askedTraceIdSchema.safeParse(param('traceId')).data
      if (traceId === undefined) return notFound(TRACES)
      const key = { workspaceId, traceId }
      const options = { acceptsGzip, plainLimitBytes: PLAIN_BYTES, signal: deadline }
      const loadEvidence = await beginEvidence(deps, key, deadline)
      const outcome = await useWaterfall(deps, key, deadline, async columns => {
        const assessed = assessCompleteness(columns, await loadEvidence(columns.arrivals))
        return pack(renderColumns(key.traceId, columns, assessed), options)
      })
      return outcome ?? notFound(TRACES)
    },
  })
}

async function pack(json: Iterable<Uint8Array>, options: PackOptions): Promise<Outcome<PackedJson>> {
  const value = await packJson(json, options)
  if (value !== undefined) return { ok: true, value }
  return invalid('accept-encoding must include gzip: the response has more than 24 MiB')
}

/** Returns the route that states how complete a trace is (docs/api/traces.md#completeness). */
function readCompletenessRoute(deps: Deps): Route {
  return guardedRoute(deps, readCompleteness, {
    resource: TRACES,
    async run({ workspaceId, param, deadline }): Promise<Outcome<TraceCompleteness>> {
      const traceId = askedTraceIdSchema.safeParse(param('traceId')).data
      if (traceId === undefined) return notFound(TRACES)
      const key = { workspaceId, traceId }
      const loadEvidence = await beginEvidence(deps, key, deadline)
      const value = await useWaterfall(deps, key, deadline, async columns => {
        const { completeness, missingParents } = assessCompleteness(columns, await loadEvidence(columns.arrivals))
        const { rootCount, danglingParentCount, numbers } = columns.arranged
        const counts = { spanCount: numbers.length, rootCount, danglingParentCount }
        return { traceId, ...completeness, ...counts, missingParents: [...missingParents] }
      })
      return value === undefined ? notFound(TRACES) : { ok: true, value }
    },
  })
}

/** Returns the route that reads the details of some spans of a trace (docs/api/traces.md#span-details). */
function readSpansRoute(deps: Deps): Route {
  return queryRoute(deps, readSpans, {
    resource: TRACES,
    body: readSpansBodySchema,
    run: ({ workspaceId, body, param, deadline }) =>
      readSpanDetails(deps, { workspaceId, traceId: param('traceId') }, body.spanIds, deadline),
  })
}

/** Dependencies of reading spans. */
interface SpanReadDeps extends TraceReadDeps, CurrentFindingDeps {}

/** Reads the details of spans of a trace, whose id is as a client has sent it. */
export async function readSpanDetails(
  deps: SpanReadDeps,
  asked: TraceKey,
  ids: readonly string[],
  deadline: AbortSignal,
): Promise<Outcome<Spans>> {
  const traceId = askedTraceIdSchema.safeParse(asked.traceId).data
  if (traceId === undefined) return notFound(TRACES)
  const key = { ...asked, traceId }
  const spanIds = [...new Set(ids)]
  const present = ({ spans, ...others }: LoadedSpans) => ({ traceId, spans: spans.map(presentSpan), ...others })
  const [found, findings] = await Promise.all([
    useSpans(deps, key, spanIds, present, deadline),
    queryDirectory(deps.directory.findingMerges(key.workspaceId)).then(merges =>
      selectFindingsOfSpans(deps.clickhouse, key, merges, spanIds, deadline),
    ),
  ])
  if (found.absent.length === spanIds.length) return notFound(TRACES)
  const spans = found.spans.map(span => ({ ...span, findingIds: [...(findings.get(span.spanId) ?? [])] }))
  return { ok: true, value: { ...found, spans } }
}

/** The part of a route that reads by a body which its operation does not state. */
interface QueryRoute<S extends z.ZodType, T> {
  readonly resource: Resource
  /** Schema of the JSON body. */
  readonly body: S
  /** Runs for an accepted caller with a valid body. A store that fails throws a TransientError or a PermanentError. */
  readonly run: (request: QueryRequest<z.infer<S>>) => Promise<Outcome<T>>
}

/** A request whose caller is accepted and whose body is valid. */
interface QueryRequest<B> extends Pick<GuardedRequest<never>, 'workspaceId' | 'param' | 'deadline'> {
  readonly body: B
}

/** Returns the route of an operation that reads what a JSON body names. */
function queryRoute<S extends z.ZodType, T>(
  { authenticate, logger, queryTimeoutMs, shares }: GuardedRouteDeps,
  operation: PermittedOperation,
  { resource, body: schema, run }: QueryRoute<S, T>,
): Route {
  return bodyRoute(authenticate, operation, {
    resource,
    body: schema,
    handle({ caller: { workspaceId }, body, param, exchange, closed }) {
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const makeReply = async () =>
        renderOutcome(await run({ workspaceId, body, param, deadline }), { operation, reply: okReply })
      return replyUnlessUnavailable(
        () => withinShares(shares, { owner: workspaceId, operation, signal: deadline }, makeReply),
        { operation, unavailable: resource.unavailable, logger, request: exchange, closed },
      )
    },
  })
}
