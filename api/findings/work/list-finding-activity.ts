import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { listFindingActivity } from '../../../schemas/http/findings/operations.ts'
import type { FindingActivityPage } from '../../../schemas/http/findings/work.ts'
import { pageQuerySchema } from '../../../schemas/http/page.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import type { Route } from '../../../shared/http/route.ts'
import { cutDirectoryPage, directoryPage, withOneMore } from '../../http/directory-page.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import type { Outcome } from '../../http/outcome.ts'
import { queryDirectory } from '../../http/query-directory.ts'
import { FINDINGS, notFound } from '../../http/resource.ts'
import { loadExisting } from './commit-change.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingActivity'>
}

/** Returns the route that lists what members have done with a finding, newest first (docs/api/findings.md#finding-work). */
export function listFindingActivityRoute(deps: Deps): Route {
  const { clickhouse, directory } = deps
  return guardedRoute(deps, listFindingActivity, {
    resource: FINDINGS,
    query: pageQuerySchema,
    async run({ workspaceId, param, query, deadline }): Promise<Outcome<FindingActivityPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const findingId = param('findingId')
      const row = await loadExisting(clickhouse, workspaceId, findingId, deadline)
      if (row === undefined) return notFound(FINDINGS)
      const finding = { workspaceId, findingId }
      const found = await queryDirectory(directory.findingActivity(finding, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: { activity: [...shown], nextCursor } }
    },
  })
}
