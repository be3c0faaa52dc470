import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { readSpans } from '../../../schemas/http/traces/operations.ts'
import { readSpansBodySchema, type Spans, traceIdSchema } from '../../../schemas/http/traces/schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import type { GuardedRouteDeps } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { queryRoute } from '../../http/query-route.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { loadSpans } from './load-spans.ts'
import { presentSpan } from './present-span.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
}

/** Returns the route that reads the details of some spans of a trace (docs/contract.md#span-details). */
export function readSpansRoute({ clickhouse, ...deps }: Deps): Route {
  return queryRoute(deps, readSpans, {
    resource: TRACES,
    body: readSpansBodySchema,
    async run({ workspaceId, body, param, deadline }): Promise<Outcome<Spans>> {
      const traceId = param('traceId')
      if (!traceIdSchema.safeParse(traceId).success) return notFound(TRACES)
      const spanIds = [...new Set(body.spanIds)]
      const { spans, ...others } = await loadSpans(clickhouse, { workspaceId, traceId }, spanIds, deadline)
      if (others.absent.length === spanIds.length) return notFound(TRACES)
      return { ok: true, value: { traceId, spans: spans.map(presentSpan), ...others } }
    },
  })
}
