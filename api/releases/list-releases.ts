import { z } from 'zod'
import { pageQuerySchema } from '../../schemas/http/page.ts'
import { listReleases } from '../../schemas/http/releases/operations.ts'
import type { ReleasesPage } from '../../schemas/http/releases/schemas.ts'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import { decodeCursor, encodeCursor } from '../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { presentRelease } from './present-release.ts'
import { RELEASES } from './resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly releases: Pick<ReleaseStore, 'releases'>
}

const cursorSchema = z
  .tuple([z.number().int().min(0), releaseSlugSchema])
  .transform(([createdAtMs, slug]) => ({ createdAtMs, slug }))

/** Returns the route that lists the releases of a workspace, newest first by registration (docs/api/releases.md#releases). */
export function listReleasesRoute(deps: Deps): Route {
  return guardedRoute(deps, listReleases, {
    resource: RELEASES,
    query: pageQuerySchema,
    async run({ workspaceId, query: { limit, cursor } }): Promise<Outcome<ReleasesPage>> {
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      const page = { limit, after: after.value }
      const { releases, end } = await queryDirectory(deps.releases.releases(workspaceId, page))
      const listed = releases.map(({ release, manifest }) => presentRelease(release, manifest))
      const nextCursor = end ? encodeCursor([end.createdAtMs, end.slug]) : null
      return { ok: true, value: { releases: listed, nextCursor } }
    },
  })
}
