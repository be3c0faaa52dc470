import { selectFinding } from '../../clickhouse/queries/select-finding.ts'
import { findingIdSchema } from '../../schemas/endpoints/findings.ts'
import type { Route } from '../../shared/http-route.ts'
import { FINDINGS_GUARD, findingNotFound, guardedRead } from '../guarded-read.ts'
import { presentFinding } from '../present-finding.ts'
import type { ApiDeps } from '../server.ts'

/** One finding. */
export function readFindingRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings/:findingId',
    bodyLimitBytes: 0,
    accept(head) {
      const findingId = head.param('findingId')
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, async (workspaceId, signal) => {
        if (!findingIdSchema.safeParse(findingId).success) return findingNotFound
        const row = await selectFinding(deps.clickhouse, { workspaceId, findingId }, signal)
        return row === undefined ? findingNotFound : { ok: true, value: { finding: presentFinding(row) } }
      })
    },
  }
}
