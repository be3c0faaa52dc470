import { surfaceIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { type DirectoryDeps, guardedDirectory, surfaceGuard, surfaceNotFound } from '../http/guarded-directory.ts'

const GUARD = surfaceGuard('org:surfaces:delete')

/** Removes a surface and revokes all its keys. What it has sent is kept as long as anything is. */
export function deleteSurfaceRoute(deps: DirectoryDeps): Route {
  return {
    method: 'DELETE',
    path: '/v3/surfaces/:surfaceId',
    bodyLimitBytes: 0,
    accept(head) {
      const surfaceId = head.param('surfaceId')
      return guardedDirectory(deps, head, { guard: GUARD }, async ({ workspaceId }) => {
        if (!surfaceIdSchema.safeParse(surfaceId).success) return surfaceNotFound
        const outcome = await askDirectory(deps.directory.deleteSurface(workspaceId, surfaceId, deps.now()))
        return outcome === 'deleted' ? { ok: true, value: { ok: true } } : surfaceNotFound
      })
    },
  }
}
