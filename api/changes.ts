import { type ChangesPage, listChanges } from '../schemas/http/changes.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { Route } from '../shared/http/route.ts'
import { directoryListRoute } from './http/directory.ts'
import type { GuardedRouteDeps } from './http/guarded-route.ts'
import type { Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'changes'>
}

/** Returns the route of the changes in a workspace. */
export function changeRoutes(deps: Deps): Route[] {
  return [listChangesRoute(deps)]
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
function listChangesRoute(deps: Deps): Route {
  return directoryListRoute(deps, listChanges, {
    resource: CHANGES,
    read: (workspaceId, page) => deps.directory.changes(workspaceId, page),
    present: (shown, nextCursor): ChangesPage => ({ changes: [...shown], nextCursor }),
  })
}
