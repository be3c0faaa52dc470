import { type ErasuresPage, listErasures } from '../../schemas/http/erasures.ts'
import { pageQuerySchema } from '../../schemas/http/page.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutDirectoryPage, directoryPage, withOneMore } from '../http/directory-page.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { ERASURE, presentErasure } from './present-erasure.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'erasures'>
}

/** Returns the route that lists the erasures of a workspace, newest first (docs/api/retention.md#erasures). */
export function listErasuresRoute(deps: Deps): Route {
  return guardedRoute(deps, listErasures, {
    resource: ERASURE,
    query: pageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<ErasuresPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const found = await queryDirectory(deps.directory.erasures(workspaceId, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { erasures: shown.map(presentErasure), nextCursor } }
    },
  })
}
