import type { Surface } from '../../schemas/control.ts'
import { createSurfaceSchema } from '../../schemas/endpoints/surfaces.ts'
import { newId } from '../../shared/control-store.ts'
import type { Route } from '../../shared/http-route.ts'
import { askControlStore } from '../ask-control-store.ts'
import { rfc3339FromUnixMs } from '../format-time.ts'
import {
  CONTROL_BODY_LIMIT_BYTES,
  CONTROL_OVER_LIMIT,
  type ControlDeps,
  guardedCreation,
  surfacesGuard,
} from '../guarded-control.ts'
import { presentSurface } from '../present-control.ts'

const GUARD = surfacesGuard('org:surfaces:write')

/** Makes a surface. */
export function createSurfaceRoute(deps: ControlDeps): Route {
  return {
    method: 'POST',
    path: '/v3/surfaces',
    bodyLimitBytes: CONTROL_BODY_LIMIT_BYTES,
    overLimit: CONTROL_OVER_LIMIT,
    accept(head) {
      return guardedCreation(deps, head, { guard: GUARD }, createSurfaceSchema, async ({ workspaceId }, { name }) => {
        const createdAt = rfc3339FromUnixMs(deps.now())
        const surface: Surface = { version: 1, id: newId('srf'), workspaceId, name, createdAt }
        await askControlStore(deps.control.putSurface(surface))
        return { ok: true, value: { surface: presentSurface(surface) } }
      })
    },
  }
}
