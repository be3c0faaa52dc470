import { type FindingTraceRow, selectFindingTraces } from '../../clickhouse/queries/findings/select-finding-traces.ts'
import { selectFindings } from '../../clickhouse/queries/findings/select-findings.ts'
import { type FindingTrace, type FindingTracesPage, findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import { pageQuerySchema } from '../../schemas/http/page.ts'
import type { Route } from '../../shared/http/route.ts'
import { rfc3339FromUnixNano } from '../http/format-time.ts'
import { FINDINGS_GUARD, findingNotFound, guardedRead } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { decodeArrivalCursor, encodeArrivalCursor } from './arrival-cursor.ts'

/** The traces in which a finding occurred, the newest first: by when it first arrived in them. */
export function listFindingTracesRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings/:findingId/traces',
    bodyLimitBytes: 0,
    accept(head) {
      const findingId = head.param('findingId')
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      const read = async (workspaceId: string, signal: AbortSignal): Promise<Outcome<FindingTracesPage>> => {
        const query = parseQuery(pageQuerySchema, asked)
        if (!query.ok) return query
        const list = ['finding traces', workspaceId, findingId]
        const cursor = decodeArrivalCursor(list, query.value.cursor, deps.now())
        if (!cursor.ok) return cursor
        if (!findingIdSchema.safeParse(findingId).success) return findingNotFound
        const { limit } = query.value
        const page = { workspaceId, findingId, limit: limit + 1, after: cursor.value?.place }
        const rows = await selectFindingTraces(deps.clickhouse, page, signal)
        // A finding may have no traces, or none after the last one.
        if (rows.length === 0) {
          const [finding] = await selectFindings(deps.clickhouse, { workspaceId, findingIds: [findingId] }, signal)
          if (finding === undefined) return findingNotFound
        }
        const last = rows.length > limit ? rows[limit - 1] : undefined
        const traces = rows.slice(0, limit).map(presentTrace)
        return { ok: true, value: { traces, nextCursor: last ? encodeArrivalCursor(list, { place: last }) : null } }
      }
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, read)
    },
  }
}

function presentTrace(row: FindingTraceRow): FindingTrace {
  return {
    id: row.id,
    traceId: row.id,
    occurrenceCount: Number(row.occurrenceCount),
    lastSeenAt: rfc3339FromUnixNano(BigInt(row.lastSeenUnixNano)),
  }
}
