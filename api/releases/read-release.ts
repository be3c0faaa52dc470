import { manifestQuerySchema, type ReleaseAnswer, releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { guardedRead, RELEASES_GUARD, releaseNotFound } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { loadRelease } from './load-release.ts'
import { decodeManifestPlace } from './release-place.ts'

/** One release: its counters, how much of its stacks could be resolved, its builds, and its manifest page by page. */
export function readReleaseRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/releases/:releaseSlug',
    bodyLimitBytes: 0,
    accept(head) {
      const slug = head.param('releaseSlug')
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      const read = async (workspaceId: string, signal: AbortSignal): Promise<Outcome<ReleaseAnswer>> => {
        const query = parseQuery(manifestQuerySchema, asked, 'api-analytics')
        if (!query.ok) return query
        const after = decodeManifestPlace(query.value.cursor)
        if (!after.ok) return after
        if (!releaseSlugSchema.safeParse(slug).success) return releaseNotFound
        const page = { limit: query.value.limit, after: after.value }
        return loadRelease(deps, { workspaceId, slug }, page, signal)
      }
      return guardedRead(deps, head.header('authorization'), RELEASES_GUARD, read)
    },
  }
}
