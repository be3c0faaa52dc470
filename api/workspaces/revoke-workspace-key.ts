import { apiKeyIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import {
  apiKeyNotFound,
  type DirectoryDeps,
  guardedDirectory,
  WORKSPACE_KEYS_GUARD,
} from '../http/guarded-directory.ts'

/** 4.11: revokes a workspace key for good, whoever made it; again and again it answers the same. */
export function revokeWorkspaceKeyRoute(deps: DirectoryDeps): Route {
  return {
    method: 'DELETE',
    path: '/v3/workspaces/:workspaceSlug/api-keys/:apiKeyId',
    bodyLimitBytes: 0,
    accept(head) {
      const keyId = head.param('apiKeyId')
      const call = { guard: WORKSPACE_KEYS_GUARD, workspaceSlug: head.param('workspaceSlug') }
      return guardedDirectory(deps, head, call, async ({ workspaceId }) => {
        if (!apiKeyIdSchema.safeParse(keyId).success) return apiKeyNotFound
        const outcome = await askDirectory(deps.directory.revokeWorkspaceKey(workspaceId, keyId, deps.now()))
        return outcome === 'revoked' ? { ok: true, value: { ok: true } } : apiKeyNotFound
      })
    },
  }
}
