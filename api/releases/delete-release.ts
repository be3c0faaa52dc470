import { deleteRelease } from '../../schemas/http/releases/operations.ts'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { RELEASES } from './resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly releases: Pick<ReleaseStore, 'remove'>
}

/** Returns the route that deletes a release. Its maps stay in the object store, where other releases may have the same. */
export function deleteReleaseRoute(deps: Deps): Route {
  return guardedRoute(deps, deleteRelease, {
    resource: RELEASES,
    async run({ workspaceId, param }) {
      const slug = param('releaseSlug')
      if (!releaseSlugSchema.safeParse(slug).success) return notFound(RELEASES)
      const outcome = await queryDirectory(deps.releases.remove(workspaceId, slug))
      return outcome === 'removed' ? { ok: true, value: { ok: true } } : notFound(RELEASES)
    },
  })
}
