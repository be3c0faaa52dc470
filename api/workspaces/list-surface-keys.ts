import { pageQuerySchema } from '../../schemas/http/page.ts'
import { listSurfaceKeys } from '../../schemas/http/workspaces/operations.ts'
import type { SurfaceKeysPage } from '../../schemas/http/workspaces/schemas.ts'
import { surfaceIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { ListPage } from '../../shared/directory/sorted-index.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutDirectoryPage, directoryPage } from '../http/directory-page.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { presentSurfaceKey } from './present-workspace.ts'
import { SURFACE } from './resources.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'surface' | 'surfaceKeys' | 'makerStates'>
  readonly now: () => number
}

/** Returns the route that lists the keys of a surface without their secrets, newest first. */
export function listSurfaceKeysRoute(deps: Deps): Route {
  const { directory } = deps
  return guardedRoute(deps, listSurfaceKeys, {
    resource: SURFACE,
    query: pageQuerySchema,
    async run({ workspaceId, param, query }): Promise<Outcome<SurfaceKeysPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const surfaceId = param('surfaceId')
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      const [surface, keys] = await Promise.all([
        queryDirectory(directory.surface(workspaceId, surfaceId)),
        queryDirectory(directory.surfaceKeys(workspaceId, surfaceId)),
      ])
      if (surface === undefined) return notFound(SURFACE)
      // A surface has at most SURFACE_KEYS_MAX keys, so all are read, and the page is cut out of them.
      const { shown, nextCursor } = cutDirectoryPage(keysAfter(keys, page.value.after), page.value)
      const makers = await queryDirectory(directory.makerStates(workspaceId, shown, deps.now()))
      return { ok: true, value: { keys: shown.map(key => presentSurfaceKey(key, makers)), nextCursor } }
    },
  })
}

function keysAfter(keys: readonly SurfaceKey[], last: ListPage['after']): readonly SurfaceKey[] {
  if (last === undefined) return keys
  return keys.filter(({ createdAt, id }) => {
    const createdAtMs = Date.parse(createdAt)
    return createdAtMs < last.createdAtMs || (createdAtMs === last.createdAtMs && id < last.id)
  })
}
