import { selectFinding } from '../../clickhouse/queries/select-finding.ts'
import { selectFindingFrames } from '../../clickhouse/queries/select-finding-frames.ts'
import { type FindingFrame, findingIdSchema } from '../../schemas/endpoints/findings.ts'
import type { Route } from '../../shared/http-route.ts'
import { FINDINGS_GUARD, findingNotFound, guardedRead } from '../guarded-read.ts'
import { presentFinding } from '../present-finding.ts'
import type { ApiDeps } from '../server.ts'

/** One finding, with the frames of its stack. */
export function readFindingRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings/:findingId',
    bodyLimitBytes: 0,
    accept(head) {
      const findingId = head.param('findingId')
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, async (workspaceId, signal) => {
        if (!findingIdSchema.safeParse(findingId).success) return findingNotFound
        const key = { workspaceId, findingId }
        const [row, stored] = await Promise.all([
          selectFinding(deps.clickhouse, key, signal),
          selectFindingFrames(deps.clickhouse, key, signal),
        ])
        if (row === undefined) return findingNotFound
        const frames: FindingFrame[] = stored === undefined ? [] : JSON.parse(stored)
        return { ok: true, value: { finding: { ...presentFinding(row), frames } } }
      })
    },
  }
}
