import { type ChangesPage, listChanges } from '../../schemas/http/changes.ts'
import { pageQuerySchema } from '../../schemas/http/page.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutDirectoryPage, directoryPage, withOneMore } from '../http/directory-page.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import type { Resource } from '../http/resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'changes'>
}

const CHANGES: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'changes are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Returns the route that lists who has changed what in a workspace, newest first (docs/api/workspaces.md#changes). */
export function listChangesRoute(deps: Deps): Route {
  return guardedRoute(deps, listChanges, {
    resource: CHANGES,
    query: pageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<ChangesPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const found = await queryDirectory(deps.directory.changes(workspaceId, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { changes: [...shown], nextCursor } }
    },
  })
}
