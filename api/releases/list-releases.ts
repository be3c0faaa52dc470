import { pageQuerySchema } from '../../schemas/http/page.ts'
import type { ReleasesPage } from '../../schemas/http/releases/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { guardedRead, RELEASES_GUARD } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { presentRelease } from './present-release.ts'
import { decodeReleasePlace, encodeReleasePlace } from './release-place.ts'

/** The releases of a workspace, the last registered first. */
export function listReleasesRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/releases',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      const read = async (workspaceId: string): Promise<Outcome<ReleasesPage>> => {
        const query = parseQuery(pageQuerySchema, asked, 'api-analytics')
        if (!query.ok) return query
        const after = decodeReleasePlace(query.value.cursor)
        if (!after.ok) return after
        const page = { limit: query.value.limit, after: after.value }
        const { releases, end } = await askDirectory(deps.releases.releases(workspaceId, page))
        const listed = releases.map(({ release, manifest }) => presentRelease(release, manifest))
        return { ok: true, value: { releases: listed, nextCursor: end ? encodeReleasePlace(end) : null } }
      }
      return guardedRead(deps, head.header('authorization'), RELEASES_GUARD, read)
    },
  }
}
