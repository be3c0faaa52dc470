import { createSurfaceSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { Surface } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import { SURFACES_MAX } from '../../shared/directory/surfaces.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import {
  DIRECTORY_BODY_LIMIT_BYTES,
  DIRECTORY_OVER_LIMIT,
  type DirectoryDeps,
  guardedCreation,
  surfacesGuard,
} from '../http/guarded-directory.ts'
import { invalid } from '../http/parse-query.ts'
import { presentSurface } from './present-workspace.ts'

const GUARD = surfacesGuard('org:surfaces:write')
const TOO_MANY_SURFACES = invalid(
  `the workspace must have at most ${SURFACES_MAX} surfaces, deleted ones too`,
  'operation',
)

/** Makes a surface. */
export function createSurfaceRoute(deps: DirectoryDeps): Route {
  return {
    method: 'POST',
    path: '/v3/surfaces',
    bodyLimitBytes: DIRECTORY_BODY_LIMIT_BYTES,
    overLimit: DIRECTORY_OVER_LIMIT,
    accept(head) {
      return guardedCreation(deps, head, { guard: GUARD }, createSurfaceSchema, async ({ workspaceId }, { name }) => {
        const createdAt = rfc3339FromUnixMs(deps.now())
        const surface: Surface = { version: 1, id: newId('srf'), workspaceId, name, createdAt }
        if ((await askDirectory(deps.directory.createSurface(surface))) === 'too_many_surfaces')
          return TOO_MANY_SURFACES
        return { ok: true, value: { surface: presentSurface(surface) } }
      })
    },
  }
}
