import { surfaceIdSchema, surfaceKeyIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import {
  type DirectoryDeps,
  guardedDirectory,
  surfaceGuard,
  surfaceKeyNotFound,
  surfaceNotFound,
} from '../http/guarded-directory.ts'

const GUARD = surfaceGuard('org:surfaces:delete')

/** Revokes a key of a surface for good; again and again it answers the same. */
export function revokeSurfaceKeyRoute(deps: DirectoryDeps): Route {
  return {
    method: 'DELETE',
    path: '/v3/surfaces/:surfaceId/keys/:keyId',
    bodyLimitBytes: 0,
    accept(head) {
      const surfaceId = head.param('surfaceId')
      const keyId = head.param('keyId')
      return guardedDirectory(deps, head, { guard: GUARD }, async ({ workspaceId }) => {
        if (!surfaceIdSchema.safeParse(surfaceId).success) return surfaceNotFound
        if (!surfaceKeyIdSchema.safeParse(keyId).success) return surfaceKeyNotFound
        const { directory, now } = deps
        const outcome = await askDirectory(directory.revokeSurfaceKey(workspaceId, surfaceId, keyId, now()))
        return outcome === 'revoked' ? { ok: true, value: { ok: true } } : surfaceKeyNotFound
      })
    },
  }
}
