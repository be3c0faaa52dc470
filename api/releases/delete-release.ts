import { deleteRelease as operation } from '../../schemas/http/releases/operations.ts'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import { type DeleteReleaseDeps, deleteRelease } from '../../shared/directory/delete-release.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { RELEASES } from './resource.ts'

interface Deps extends GuardedRouteDeps, DeleteReleaseDeps {
  readonly directory: Pick<Directory, 'addChange'>
  readonly now: () => number
}

/**
 * Returns the route that deletes a release and its uploads. Its maps stay in the object store as long as anything
 * uses them (docs/api/releases.md#unused-maps).
 */
export function deleteReleaseRoute(deps: Deps): Route {
  return guardedRoute(deps, operation, {
    resource: RELEASES,
    async run({ caller, workspaceId, param }) {
      const slug = param('releaseSlug')
      if (!releaseSlugSchema.safeParse(slug).success) return notFound(RELEASES)
      const author = authorOf(caller, deps.now())
      const onRemoval = () =>
        deps.directory.addChange(workspaceId, author, { action: 'release.deleted', subject: slug })
      const outcome = await queryDirectory(deleteRelease(deps, workspaceId, slug, onRemoval))
      return outcome === 'removed' ? { ok: true, value: { ok: true } } : notFound(RELEASES)
    },
  })
}
