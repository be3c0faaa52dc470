import { pageQuerySchema } from '../../schemas/http/page.ts'
import { listWorkspaceKeys } from '../../schemas/http/workspaces/operations.ts'
import type { WorkspaceKeysPage } from '../../schemas/http/workspaces/schemas.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutDirectoryPage, directoryPage, withOneMore } from '../http/directory-page.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { presentWorkspaceKey } from './present-workspace.ts'
import { WORKSPACE } from './resources.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'workspaceKeys'>
}

/**
 * Returns the route that lists the API keys of a workspace without their secrets, newest first
 * (docs/api/workspaces.md#list-keys).
 */
export function listWorkspaceKeysRoute(deps: Deps): Route {
  return guardedRoute(deps, listWorkspaceKeys, {
    resource: WORKSPACE,
    query: pageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<WorkspaceKeysPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const found = await queryDirectory(deps.directory.workspaceKeys(workspaceId, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { apiKeys: shown.map(presentWorkspaceKey), nextCursor } }
    },
  })
}
