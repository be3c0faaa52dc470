import { createSurface } from '../../schemas/http/workspaces/operations.ts'
import { createSurfaceSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Surface } from '../../schemas/records/directory.ts'
import { type Directory, newId } from '../../shared/directory/directory.ts'
import { SURFACES_MAX } from '../../shared/directory/surfaces.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { invalid } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { presentSurface } from './present-workspace.ts'
import { WORKSPACE } from './resources.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'createSurface'>
  readonly now: () => number
}

const TOO_MANY_SURFACES = invalid(
  `a workspace can have at most ${SURFACES_MAX} surfaces: delete surfaces that are not used`,
)

/** Returns the route that creates a surface. */
export function createSurfaceRoute(deps: Deps): Route {
  return creationRoute(deps, createSurface, {
    resource: WORKSPACE,
    body: createSurfaceSchema,
    async create({ caller, body: { name } }) {
      const { workspaceId } = caller
      const nowMs = deps.now()
      const createdAt = rfc3339FromUnixMs(nowMs)
      const surface: Surface = { version: 1, id: newId('srf'), workspaceId, name, createdAt }
      const outcome = await queryDirectory(deps.directory.createSurface(surface, authorOf(caller, nowMs)))
      if (outcome === 'too_many_surfaces') return TOO_MANY_SURFACES
      return { ok: true, value: { surface: presentSurface(surface) } }
    },
  })
}
