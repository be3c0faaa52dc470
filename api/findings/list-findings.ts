import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectFindings } from '../../clickhouse/queries/findings/select-findings.ts'
import { selectFindingsPage } from '../../clickhouse/queries/findings/select-findings-page.ts'
import { selectFindingsSnapshot } from '../../clickhouse/queries/findings/select-findings-snapshot.ts'
import { listFindings } from '../../schemas/http/findings/operations.ts'
import type { FindingsPage } from '../../schemas/http/findings/schemas.ts'
import { listFindingsQuerySchema } from '../../schemas/http/findings/schemas.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage } from '../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS } from '../http/resource.ts'
import { decodeArrivalCursor, encodeArrivalCursor } from './arrival-cursor.ts'
import { presentFinding } from './present-finding.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for the queries that search for a page. */
  readonly findingLists: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/**
 * Returns the route that lists the findings of a workspace, by the latest arrival first (docs/contract.md#findings). All
 * pages of a list show what was stored when its first page was read.
 */
export function listFindingsRoute(deps: Deps): Route {
  const { clickhouse } = deps
  return guardedRoute(deps, listFindings, {
    resource: FINDINGS,
    query: listFindingsQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<FindingsPage>> {
      const { limit, cursor, surface, service, from, to, q } = query
      const filter = {
        surfaceId: surface,
        serviceName: service,
        fromMs: from === undefined ? undefined : Date.parse(from),
        toMs: to === undefined ? undefined : Date.parse(to),
        text: q,
      }
      const list = ['findings', workspaceId, surface, service, filter.fromMs, filter.toMs, q]
      const after = decodeArrivalCursor(list, cursor, deps.now())
      if (!after.ok) return after
      const snapshot = after.value?.snapshot ?? (await selectFindingsSnapshot(clickhouse, deadline))
      const page = { workspaceId, snapshot, filter, limit: limit + 1, after: after.value?.last }
      const search = () => selectFindingsPage(clickhouse, page, deadline)
      const arrivals = await deps.findingLists.run(workspaceId, search, deadline)
      const { shown, nextCursor } = cutPage(arrivals, limit, last => encodeArrivalCursor(list, { last, snapshot }))
      const findingIds = shown.map(({ id }) => id)
      const rows = await selectFindings(clickhouse, { workspaceId, findingIds }, deadline)
      const rowsById = new Map(rows.map(row => [row.id, row]))
      const findings = findingIds.flatMap(id => {
        const row = rowsById.get(id)
        // A finding can expire between the two queries.
        return row === undefined ? [] : [presentFinding(row)]
      })
      return { ok: true, value: { findings, nextCursor } }
    },
  })
}
