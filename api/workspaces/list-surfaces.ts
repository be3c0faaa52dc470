import type { SurfacesPage } from '../../schemas/http/workspaces/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { askedPage, pageOf, parsePage, withOneMore } from '../http/directory-page.ts'
import { type DirectoryDeps, guardedDirectory, surfacesGuard } from '../http/guarded-directory.ts'
import type { Outcome } from '../http/reply.ts'
import { presentSurface } from './present-workspace.ts'

const GUARD = surfacesGuard('org:surfaces:read')

/** The surfaces of a workspace, the newest first. */
export function listSurfacesRoute(deps: DirectoryDeps): Route {
  return {
    method: 'GET',
    path: '/v3/surfaces',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = askedPage(head)
      return guardedDirectory(deps, head, { guard: GUARD }, async ({ workspaceId }): Promise<Outcome<SurfacesPage>> => {
        const page = parsePage(asked)
        if (!page.ok) return page
        const found = await askDirectory(deps.directory.surfaces(workspaceId, withOneMore(page.value)))
        const { shown, nextCursor } = pageOf(found, page.value)
        return { ok: true, value: { surfaces: shown.map(presentSurface), nextCursor } }
      })
    },
  }
}
