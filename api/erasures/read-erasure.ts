import { type ErasureAnswer, erasureIdSchema, readErasure } from '../../schemas/http/erasures.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { ERASURE, presentErasure } from './present-erasure.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'erasure'>
}

/** Returns the route that reads an erasure and its receipt (docs/api/retention.md#erasures). */
export function readErasureRoute(deps: Deps): Route {
  return guardedRoute(deps, readErasure, {
    resource: ERASURE,
    async run({ workspaceId, param }): Promise<Outcome<ErasureAnswer>> {
      const id = param('erasureId')
      if (!erasureIdSchema.safeParse(id).success) return notFound(ERASURE)
      const erasure = await queryDirectory(deps.directory.erasure(workspaceId, id))
      return erasure ? { ok: true, value: { erasure: presentErasure(erasure) } } : notFound(ERASURE)
    },
  })
}
