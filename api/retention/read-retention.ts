import { type RetentionAnswer, readRetention } from '../../schemas/http/retention.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { presentRetention } from './present-retention.ts'
import { RETENTION } from './resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'workspaceById'>
  readonly retentionDays: number
}

/** Returns the route that reads how long data is kept (docs/api/retention.md#retention). */
export function readRetentionRoute(deps: Deps): Route {
  return guardedRoute(deps, readRetention, {
    resource: RETENTION,
    async run({ workspaceId }): Promise<Outcome<RetentionAnswer>> {
      const workspace = await queryDirectory(deps.directory.workspaceById(workspaceId))
      if (workspace === undefined) return notFound(RETENTION)
      return { ok: true, value: presentRetention(workspace, deps.retentionDays) }
    },
  })
}
