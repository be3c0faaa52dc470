import { pageQuerySchema } from '../../schemas/http/page.ts'
import { listSurfaces } from '../../schemas/http/workspaces/operations.ts'
import type { SurfacesPage } from '../../schemas/http/workspaces/schemas.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutDirectoryPage, directoryPage, withOneMore } from '../http/directory-page.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { presentSurface } from './present-workspace.ts'
import { WORKSPACE } from './resources.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'surfaces'>
}

/** Returns the route that lists the surfaces of a workspace, newest first. */
export function listSurfacesRoute(deps: Deps): Route {
  return guardedRoute(deps, listSurfaces, {
    resource: WORKSPACE,
    query: pageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<SurfacesPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const found = await queryDirectory(deps.directory.surfaces(workspaceId, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { surfaces: shown.map(presentSurface), nextCursor } }
    },
  })
}
