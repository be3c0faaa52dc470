import { pageQuerySchema } from '../../schemas/endpoints/page.ts'
import type { SurfacesPage } from '../../schemas/endpoints/surfaces.ts'
import type { Route } from '../../shared/http-route.ts'
import { askControlStore } from '../ask-control-store.ts'
import { decodeControlPlace, encodeControlPlace } from '../control-place.ts'
import { type ControlDeps, guardedControl, surfacesGuard } from '../guarded-control.ts'
import { parseQuery } from '../parse-query.ts'
import { presentSurface } from '../present-control.ts'
import type { Outcome } from '../reply.ts'

const GUARD = surfacesGuard('org:surfaces:read')

/** The surfaces of a workspace, the newest first. */
export function listSurfacesRoute(deps: ControlDeps): Route {
  return {
    method: 'GET',
    path: '/v3/surfaces',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      return guardedControl(deps, head, { guard: GUARD }, async ({ workspaceId }): Promise<Outcome<SurfacesPage>> => {
        const query = parseQuery(pageQuerySchema, asked, 'operation')
        if (!query.ok) return query
        const after = decodeControlPlace(query.value.cursor)
        if (!after.ok) return after
        const { limit } = query.value
        const page = { limit: limit + 1, after: after.value }
        const found = await askControlStore(deps.control.surfaces(workspaceId, page))
        const last = found.length > limit ? found[limit - 1] : undefined
        const surfaces = found.slice(0, limit).map(presentSurface)
        return { ok: true, value: { surfaces, nextCursor: last ? encodeControlPlace(last) : null } }
      })
    },
  }
}
