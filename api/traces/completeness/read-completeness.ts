import { readCompleteness } from '../../../schemas/http/traces/operations.ts'
import { type TraceCompleteness, traceIdSchema } from '../../../schemas/http/traces/schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { type ColumnsDeps, useColumns } from '../columns/use-columns.ts'
import { assessCompleteness } from './assess-completeness.ts'
import { beginEvidence, type EvidenceDeps } from './load-evidence.ts'

type Deps = GuardedRouteDeps & EvidenceDeps & ColumnsDeps

/** Returns the route that states how complete a trace is (docs/api/traces.md#completeness). */
export function readCompletenessRoute(deps: Deps): Route {
  return guardedRoute(deps, readCompleteness, {
    resource: TRACES,
    async run({ workspaceId, param, deadline }): Promise<Outcome<TraceCompleteness>> {
      const traceId = param('traceId')
      if (!traceIdSchema.safeParse(traceId).success) return notFound(TRACES)
      const key = { workspaceId, traceId }
      const loadEvidence = await beginEvidence(deps, key, deadline)
      const value = await useColumns(deps, key, deadline, async columns => {
        const { completeness, missingParents } = assessCompleteness(columns, await loadEvidence(columns.arrivals))
        const { rootCount, danglingParentCount, numbers } = columns.arranged
        const counts = { spanCount: numbers.length, rootCount, danglingParentCount }
        return { traceId, ...completeness, ...counts, missingParents: [...missingParents] }
      })
      return value === undefined ? notFound(TRACES) : { ok: true, value }
    },
  })
}
