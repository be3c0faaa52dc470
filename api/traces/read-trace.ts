import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import { readTrace } from '../../schemas/http/traces/operations.ts'
import { readTraceQuerySchema, traceIdSchema } from '../../schemas/http/traces/schemas.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { okJson } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { loadTrace } from './load-trace.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Returns the first day whose data of a kind is shown to readers of a workspace, in days since 1970. */
  readonly firstKeptDay: (workspaceId: string, kind: 'findings') => Promise<number>
  /** Slots for large traces, which bound the memory that they need. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/** Returns the route that reads every retained span of one trace of a finding (docs/api/findings.md#trace). */
export function readTraceRoute(deps: Deps): Route {
  return guardedRoute(deps, readTrace, {
    resource: FINDINGS,
    query: readTraceQuerySchema,
    reply: okJson,
    async run({ workspaceId, param, query: { limit }, deadline }) {
      const [findingId, traceId] = [param('findingId'), param('traceId')]
      const isWellFormed = findingIdSchema.safeParse(findingId).success && traceIdSchema.safeParse(traceId).success
      if (!isWellFormed) return notFound(FINDINGS)
      const trace = await loadTrace(deps, { workspaceId, findingId, traceId }, limit, deadline)
      return trace === undefined ? notFound(FINDINGS) : { ok: true, value: trace }
    },
  })
}
