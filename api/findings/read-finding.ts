import { findingActivityQuerySchema, findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { FINDINGS_GUARD, findingNotFound, guardedRead } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { ApiDeps } from '../routes.ts'
import { loadFinding } from './load-finding.ts'

/** One finding, with the frames of its stack, and when and where it occurred. */
export function readFindingRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings/:findingId',
    bodyLimitBytes: 0,
    accept(head) {
      const findingId = head.param('findingId')
      const asked = { from: head.query('from'), to: head.query('to') }
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, async (workspaceId, signal) => {
        const query = parseQuery(findingActivityQuerySchema, asked)
        if (!query.ok) return query
        if (!findingIdSchema.safeParse(findingId).success) return findingNotFound
        const key = { workspaceId, findingId }
        const finding = await loadFinding(deps.clickhouse, key, query.value, deps.now(), signal)
        return finding === undefined ? findingNotFound : { ok: true, value: { finding } }
      })
    },
  }
}
