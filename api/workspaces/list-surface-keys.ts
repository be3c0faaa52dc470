import type { SurfaceKeysPage } from '../../schemas/http/workspaces/schemas.ts'
import { surfaceIdSchema } from '../../schemas/http/workspaces/schemas.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { ListPlace } from '../../shared/directory/sorted-index.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { askedPage, pageOf, parsePage } from '../http/directory-page.ts'
import { type DirectoryDeps, guardedDirectory, surfaceGuard, surfaceNotFound } from '../http/guarded-directory.ts'
import type { Outcome } from '../http/reply.ts'
import { presentSurfaceKey } from './present-workspace.ts'

const GUARD = surfaceGuard('org:surfaces:read')

/** The keys of a surface without their texts, the newest first. */
export function listSurfaceKeysRoute(deps: DirectoryDeps): Route {
  return {
    method: 'GET',
    path: '/v3/surfaces/:surfaceId/keys',
    bodyLimitBytes: 0,
    accept(head) {
      const surfaceId = head.param('surfaceId')
      const asked = askedPage(head)
      return guardedDirectory(
        deps,
        head,
        { guard: GUARD },
        async ({ workspaceId }): Promise<Outcome<SurfaceKeysPage>> => {
          const page = parsePage(asked)
          if (!page.ok) return page
          if (!surfaceIdSchema.safeParse(surfaceId).success) return surfaceNotFound
          const { directory } = deps
          const [surface, all] = await Promise.all([
            askDirectory(directory.surface(workspaceId, surfaceId)),
            askDirectory(directory.surfaceKeys(workspaceId, surfaceId)),
          ])
          if (surface === undefined) return surfaceNotFound
          const { after } = page.value
          // A surface has SURFACE_KEYS_MAX keys at most: all are read, and the page is cut out of them.
          const { shown, nextCursor } = pageOf(after ? all.filter(key => isAfter(key, after)) : all, page.value)
          return { ok: true, value: { keys: shown.map(presentSurfaceKey), nextCursor } }
        },
      )
    },
  }
}

function isAfter({ createdAt, id }: SurfaceKey, last: ListPlace): boolean {
  const createdAtMs = Date.parse(createdAt)
  return createdAtMs < last.createdAtMs || (createdAtMs === last.createdAtMs && id < last.id)
}
