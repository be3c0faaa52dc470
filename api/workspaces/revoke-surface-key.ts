import { revokeSurfaceKey } from '../../schemas/http/workspaces/operations.ts'
import { surfaceIdSchema, surfaceKeyIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { SURFACE, SURFACE_KEY } from './resources.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'revokeSurfaceKey'>
  readonly now: () => number
}

/** Returns the route that revokes a key of a surface for good. Repeated requests return the same. */
export function revokeSurfaceKeyRoute(deps: Deps): Route {
  return guardedRoute(deps, revokeSurfaceKey, {
    resource: SURFACE,
    async run({ caller, workspaceId, param }) {
      const [surfaceId, keyId] = [param('surfaceId'), param('keyId')]
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      if (!surfaceKeyIdSchema.safeParse(keyId).success) return notFound(SURFACE_KEY)
      const now = deps.now()
      const author = authorOf(caller, now)
      const outcome = await queryDirectory(deps.directory.revokeSurfaceKey(workspaceId, surfaceId, keyId, now, author))
      return outcome === 'revoked' ? { ok: true, value: { ok: true } } : notFound(SURFACE_KEY)
    },
  })
}
