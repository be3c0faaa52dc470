import type { TraceKey } from '../../../clickhouse/queries/traces/select-trace.ts'
import { readSpans } from '../../../schemas/http/traces/operations.ts'
import { readSpansBodySchema, type Spans, traceIdSchema } from '../../../schemas/http/traces/schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import type { GuardedRouteDeps } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { queryRoute } from '../../http/query-route.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { type LoadedSpans, type SpansDeps, useSpans } from './load-spans.ts'
import { presentSpan } from './present-span.ts'

type Deps = GuardedRouteDeps & SpansDeps

/** Returns the route that reads the details of some spans of a trace (docs/api/traces.md#span-details). */
export function readSpansRoute(deps: Deps): Route {
  return queryRoute(deps, readSpans, {
    resource: TRACES,
    body: readSpansBodySchema,
    run: ({ workspaceId, body, param, deadline }) =>
      readSpanDetails(deps, { workspaceId, traceId: param('traceId') }, body.spanIds, deadline),
  })
}

/** Reads the details of spans of a trace. */
export async function readSpanDetails(
  deps: SpansDeps,
  key: TraceKey,
  asked: readonly string[],
  deadline: AbortSignal,
): Promise<Outcome<Spans>> {
  const { traceId } = key
  if (!traceIdSchema.safeParse(traceId).success) return notFound(TRACES)
  const spanIds = [...new Set(asked)]
  const present = ({ spans, ...others }: LoadedSpans): Spans => ({ traceId, spans: spans.map(presentSpan), ...others })
  const value = await useSpans(deps, key, spanIds, present, deadline)
  return value.absent.length === spanIds.length ? notFound(TRACES) : { ok: true, value }
}
