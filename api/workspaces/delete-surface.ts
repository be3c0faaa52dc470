import { deleteSurface } from '../../schemas/http/workspaces/operations.ts'
import { surfaceIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { SURFACE } from './resources.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'deleteSurface'>
  readonly now: () => number
}

/** Returns the route that deletes a surface and revokes all its keys. The surface's data is kept until its retention ends. */
export function deleteSurfaceRoute(deps: Deps): Route {
  return guardedRoute(deps, deleteSurface, {
    resource: SURFACE,
    async run({ caller, workspaceId, param }) {
      const surfaceId = param('surfaceId')
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      const now = deps.now()
      const author = authorOf(caller, now)
      const outcome = await queryDirectory(deps.directory.deleteSurface(workspaceId, surfaceId, now, author))
      return outcome === 'deleted' ? { ok: true, value: { ok: true } } : notFound(SURFACE)
    },
  })
}
