import { deleteRelease as operation } from '../../schemas/http/releases/operations.ts'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import { type DeleteReleaseDeps, deleteRelease } from '../../shared/directory/delete-release.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { RELEASES } from './resource.ts'

interface Deps extends GuardedRouteDeps, DeleteReleaseDeps {}

/**
 * Returns the route that deletes a release and its uploads. Its maps stay in the object store as long as anything
 * uses them (docs/contract.md#unused-maps).
 */
export function deleteReleaseRoute(deps: Deps): Route {
  return guardedRoute(deps, operation, {
    resource: RELEASES,
    async run({ workspaceId, param }) {
      const slug = param('releaseSlug')
      if (!releaseSlugSchema.safeParse(slug).success) return notFound(RELEASES)
      const outcome = await queryDirectory(deleteRelease(deps, workspaceId, slug))
      return outcome === 'removed' ? { ok: true, value: { ok: true } } : notFound(RELEASES)
    },
  })
}
