import { createSurface, deleteSurface, listSurfaces } from '../../schemas/http/workspaces/operations.ts'
import {
  createSurfaceSchema,
  type ListedSurface,
  type SurfacesPage,
  surfaceIdSchema,
} from '../../schemas/http/workspaces/schemas.ts'
import type { Surface } from '../../schemas/records/directory.ts'
import { type Directory, newId } from '../../shared/directory/directory.ts'
import { SURFACES_MAX } from '../../shared/directory/surfaces.ts'
import type { Route } from '../../shared/http/route.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, directoryListRoute, onceOf, queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { SURFACE, WORKSPACE } from './resources.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'surfaces' | 'createSurface' | 'deleteSurface'>
}

/** Returns the routes of the surfaces of a workspace. */
export function surfaceRoutes(deps: Deps): Route[] {
  return [listSurfacesRoute(deps), createSurfaceRoute(deps), deleteSurfaceRoute(deps)]
}

/** Returns the route that lists the surfaces of a workspace, newest first. */
function listSurfacesRoute(deps: Deps): Route {
  return directoryListRoute(deps, listSurfaces, {
    resource: WORKSPACE,
    read: (workspaceId, page) => deps.directory.surfaces(workspaceId, page),
    present: (shown, nextCursor): SurfacesPage => ({ surfaces: shown.map(presentSurface), nextCursor }),
  })
}

const TOO_MANY_SURFACES = invalid(
  `a workspace can have at most ${SURFACES_MAX} surfaces: delete surfaces that are not used`,
)

/** Returns the route that creates a surface. */
function createSurfaceRoute(deps: Deps): Route {
  return creationRoute(deps, createSurface, {
    resource: WORKSPACE,
    body: createSurfaceSchema,
    async create({ caller, body: { name }, creation }) {
      const { workspaceId } = caller
      const nowMs = deps.now()
      const createdAt = rfc3339FromUnixMs(nowMs)
      const surface: Surface = { version: 1, id: newId('srf'), workspaceId, name, createdAt }
      const value = { surface: presentSurface(surface) }
      const author = authorOf(
        caller,
        nowMs,
        onceOf(creation, () => value),
      )
      const outcome = await queryDirectory(deps.directory.createSurface(surface, author))
      return outcome === 'too_many_surfaces' ? TOO_MANY_SURFACES : { ok: true, value }
    },
  })
}

/** Returns the route that deletes a surface and revokes all its keys. The surface's data is kept until its retention ends. */
function deleteSurfaceRoute(deps: Deps): Route {
  return guardedRoute(deps, deleteSurface, {
    resource: SURFACE,
    async run({ caller, workspaceId, param }) {
      const surfaceId = param('surfaceId')
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      const now = deps.now()
      const author = authorOf(caller, now)
      const outcome = await queryDirectory(deps.directory.deleteSurface(workspaceId, surfaceId, now, author))
      return outcome === 'deleted' ? { ok: true, value: { ok: true } } : notFound(SURFACE)
    },
  })
}

/** Returns a surface as responses show it. */
function presentSurface({ id, name, createdAt }: Surface): ListedSurface {
  return { id, name, createdAt }
}
