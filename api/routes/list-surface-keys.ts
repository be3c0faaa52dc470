import type { SurfaceKey } from '../../schemas/control.ts'
import { pageQuerySchema } from '../../schemas/endpoints/page.ts'
import type { SurfaceKeysPage } from '../../schemas/endpoints/surface-keys.ts'
import { surfaceIdSchema } from '../../schemas/endpoints/surfaces.ts'
import type { ListPlace } from '../../shared/control-index.ts'
import type { Route } from '../../shared/http-route.ts'
import { askControlStore } from '../ask-control-store.ts'
import { decodeControlPlace, encodeControlPlace } from '../control-place.ts'
import { type ControlDeps, guardedControl, surfaceGuard, surfaceNotFound } from '../guarded-control.ts'
import { parseQuery } from '../parse-query.ts'
import { presentSurfaceKey } from '../present-control.ts'
import type { Outcome } from '../reply.ts'

const GUARD = surfaceGuard('org:surfaces:read')

/** The keys of a surface without their texts, the newest first. */
export function listSurfaceKeysRoute(deps: ControlDeps): Route {
  return {
    method: 'GET',
    path: '/v3/surfaces/:surfaceId/keys',
    bodyLimitBytes: 0,
    accept(head) {
      const surfaceId = head.param('surfaceId')
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      return guardedControl(
        deps,
        head,
        { guard: GUARD },
        async ({ workspaceId }): Promise<Outcome<SurfaceKeysPage>> => {
          const query = parseQuery(pageQuerySchema, asked, 'operation')
          if (!query.ok) return query
          const after = decodeControlPlace(query.value.cursor)
          if (!after.ok) return after
          if (!surfaceIdSchema.safeParse(surfaceId).success) return surfaceNotFound
          const { control } = deps
          const [surface, all] = await Promise.all([
            askControlStore(control.surface(workspaceId, surfaceId)),
            askControlStore(control.surfaceKeys(workspaceId, surfaceId)),
          ])
          if (surface === undefined) return surfaceNotFound
          return { ok: true, value: pageOf(all, query.value.limit, after.value) }
        },
      )
    },
  }
}

/** A surface has SURFACE_KEYS_MAX keys at most: all are read, and the page is cut out of them. */
function pageOf(newestFirst: readonly SurfaceKey[], limit: number, after: ListPlace | undefined): SurfaceKeysPage {
  const rest = after ? newestFirst.filter(key => isAfter(key, after)) : newestFirst
  const last = rest.length > limit ? rest[limit - 1] : undefined
  return {
    keys: rest.slice(0, limit).map(presentSurfaceKey),
    nextCursor: last ? encodeControlPlace(last) : null,
  }
}

function isAfter({ createdAt, id }: SurfaceKey, last: ListPlace): boolean {
  const createdAtMs = Date.parse(createdAt)
  return createdAtMs < last.createdAtMs || (createdAtMs === last.createdAtMs && id < last.id)
}
