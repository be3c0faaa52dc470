import { selectFindings } from '../../clickhouse/queries/select-findings.ts'
import type { FindingsPage } from '../../schemas/endpoints/findings.ts'
import { pageQuerySchema } from '../../schemas/endpoints/page.ts'
import type { Route } from '../../shared/http-route.ts'
import { FINDINGS_GUARD, guardedRead } from '../guarded-read.ts'
import { decodeCursor, encodeCursor, parseQuery } from '../parse-query.ts'
import { presentFinding } from '../present-finding.ts'
import type { Outcome } from '../reply.ts'
import type { ApiDeps } from '../server.ts'

/** The findings of a workspace, the most recently seen first. */
export function listFindingsRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      const read = async (workspaceId: string, signal: AbortSignal): Promise<Outcome<FindingsPage>> => {
        const query = parseQuery(pageQuerySchema, asked)
        if (!query.ok) return query
        const cursor = decodeCursor(query.value.cursor)
        if (!cursor.ok) return cursor
        const { limit } = query.value
        const page = { workspaceId, limit: limit + 1, after: cursor.value }
        const rows = await selectFindings(deps.clickhouse, page, signal)
        const last = rows.length > limit ? rows[limit - 1] : undefined
        const findings = rows.slice(0, limit).map(presentFinding)
        return { ok: true, value: { findings, nextCursor: last ? encodeCursor(last) : null } }
      }
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, read)
    },
  }
}
