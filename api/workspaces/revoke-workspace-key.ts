import { revokeWorkspaceKey } from '../../schemas/http/workspaces/operations.ts'
import { apiKeyIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { API_KEY, WORKSPACE } from './resources.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'revokeWorkspaceKey'>
  readonly now: () => number
}

/**
 * Returns the route that revokes an API key of a workspace for good, whichever member created it. Repeated requests return
 * the same (docs/api/workspaces.md#revoke-key).
 */
export function revokeWorkspaceKeyRoute(deps: Deps): Route {
  return guardedRoute(deps, revokeWorkspaceKey, {
    resource: WORKSPACE,
    async run({ caller, workspaceId, param }) {
      const keyId = param('apiKeyId')
      if (!apiKeyIdSchema.safeParse(keyId).success) return notFound(API_KEY)
      const now = deps.now()
      const author = authorOf(caller, now)
      const outcome = await queryDirectory(deps.directory.revokeWorkspaceKey(workspaceId, keyId, now, author))
      return outcome === 'revoked' ? { ok: true, value: { ok: true } } : notFound(API_KEY)
    },
  })
}
