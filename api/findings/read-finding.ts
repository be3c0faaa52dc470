import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { readFinding } from '../../schemas/http/findings/operations.ts'
import { findingActivityQuerySchema, findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { loadFinding } from './load-finding.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
}

/** Returns the route that reads one finding: its stack, and when and where it occurred (docs/contract.md#findings). */
export function readFindingRoute(deps: Deps): Route {
  return guardedRoute(deps, readFinding, {
    resource: FINDINGS,
    query: findingActivityQuerySchema,
    async run({ workspaceId, param, query, deadline }) {
      const findingId = param('findingId')
      if (!findingIdSchema.safeParse(findingId).success) return notFound(FINDINGS)
      const finding = await loadFinding(deps.clickhouse, { workspaceId, findingId }, query, deps.now(), deadline)
      return finding === undefined ? notFound(FINDINGS) : { ok: true, value: { finding } }
    },
  })
}
