import { pageQuerySchema } from '../../schemas/endpoints/page.ts'
import type { WorkspaceKeysPage } from '../../schemas/endpoints/workspace-keys.ts'
import type { Route } from '../../shared/http-route.ts'
import { askControlStore } from '../ask-control-store.ts'
import { decodeControlPlace, encodeControlPlace } from '../control-place.ts'
import { type ControlDeps, guardedControl, WORKSPACE_KEYS_GUARD } from '../guarded-control.ts'
import { parseQuery } from '../parse-query.ts'
import { presentWorkspaceKey } from '../present-control.ts'
import type { Outcome } from '../reply.ts'

/** The workspace keys of a workspace without their secrets, the newest first. */
export function listWorkspaceKeysRoute(deps: ControlDeps): Route {
  return {
    method: 'GET',
    path: '/v3/workspaces/:workspaceSlug/api-keys',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      const call = { guard: WORKSPACE_KEYS_GUARD, workspaceSlug: head.param('workspaceSlug') }
      return guardedControl(deps, head, call, async ({ workspaceId }): Promise<Outcome<WorkspaceKeysPage>> => {
        const query = parseQuery(pageQuerySchema, asked, 'operation')
        if (!query.ok) return query
        const after = decodeControlPlace(query.value.cursor)
        if (!after.ok) return after
        const { limit } = query.value
        const page = { limit: limit + 1, after: after.value }
        const found = await askControlStore(deps.control.workspaceKeys(workspaceId, page))
        const last = found.length > limit ? found[limit - 1] : undefined
        const apiKeys = found.slice(0, limit).map(presentWorkspaceKey)
        return { ok: true, value: { apiKeys, nextCursor: last ? encodeControlPlace(last) : null } }
      })
    },
  }
}
