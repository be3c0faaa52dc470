import type { WorkspaceKeysPage } from '../../schemas/http/workspaces/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { askedPage, pageOf, parsePage, withOneMore } from '../http/directory-page.ts'
import { type DirectoryDeps, guardedDirectory, WORKSPACE_KEYS_GUARD } from '../http/guarded-directory.ts'
import type { Outcome } from '../http/reply.ts'
import { presentWorkspaceKey } from './present-workspace.ts'

/** The workspace keys of a workspace without their secrets, the newest first. */
export function listWorkspaceKeysRoute(deps: DirectoryDeps): Route {
  return {
    method: 'GET',
    path: '/v3/workspaces/:workspaceSlug/api-keys',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = askedPage(head)
      const call = { guard: WORKSPACE_KEYS_GUARD, workspaceSlug: head.param('workspaceSlug') }
      return guardedDirectory(deps, head, call, async ({ workspaceId }): Promise<Outcome<WorkspaceKeysPage>> => {
        const page = parsePage(asked)
        if (!page.ok) return page
        const found = await askDirectory(deps.directory.workspaceKeys(workspaceId, withOneMore(page.value)))
        const { shown, nextCursor } = pageOf(found, page.value)
        return { ok: true, value: { apiKeys: shown.map(presentWorkspaceKey), nextCursor } }
      })
    },
  }
}
