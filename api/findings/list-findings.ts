import { selectFindings } from '../../clickhouse/queries/findings/select-findings.ts'
import { selectFindingsPage } from '../../clickhouse/queries/findings/select-findings-page.ts'
import { selectFindingsSnapshot } from '../../clickhouse/queries/findings/select-findings-snapshot.ts'
import type { FindingsPage } from '../../schemas/http/findings/schemas.ts'
import { type ListFindingsQuery, listFindingsQuerySchema } from '../../schemas/http/findings/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { FINDINGS_GUARD, guardedRead } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { decodeArrivalCursor, encodeArrivalCursor } from './arrival-cursor.ts'
import { presentFinding } from './present-finding.ts'

const PARAMETERS = ['limit', 'cursor', 'surface', 'service', 'from', 'to', 'q'] as const

/** The findings of a workspace, the one that arrived last first. */
export function listFindingsRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = Object.fromEntries(PARAMETERS.map(name => [name, head.query(name)]))
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, async (workspaceId, signal) => {
        const query = parseQuery(listFindingsQuerySchema, asked)
        return query.ok ? listFindings(deps, workspaceId, query.value, signal) : query
      })
    },
  }
}

/** All pages of one list are of what was stored when its first was read. */
async function listFindings(
  { clickhouse, now }: ApiDeps,
  workspaceId: string,
  { limit, cursor, surface, service, from, to, q }: ListFindingsQuery,
  signal: AbortSignal,
): Promise<Outcome<FindingsPage>> {
  const filter = {
    surfaceId: surface,
    serviceName: service,
    fromMs: from === undefined ? undefined : Date.parse(from),
    toMs: to === undefined ? undefined : Date.parse(to),
    text: q,
  }
  const list = ['findings', workspaceId, surface, service, filter.fromMs, filter.toMs, q]
  const after = decodeArrivalCursor(list, cursor, now())
  if (!after.ok) return after
  const snapshot = after.value?.snapshot ?? (await selectFindingsSnapshot(clickhouse, signal))
  const page = { workspaceId, snapshot, filter, limit: limit + 1, after: after.value?.place }
  const places = await selectFindingsPage(clickhouse, page, signal)
  const shown = places.slice(0, limit)
  const findingIds = shown.map(({ id }) => id)
  const rows = await selectFindings(clickhouse, { workspaceId, findingIds }, signal)
  const rowOf = new Map(rows.map(row => [row.id, row]))
  const findings = findingIds.flatMap(id => {
    const row = rowOf.get(id)
    // It can expire between the two queries.
    return row === undefined ? [] : [presentFinding(row)]
  })
  const last = places.length > limit ? shown.at(-1) : undefined
  return {
    ok: true,
    value: { findings, nextCursor: last ? encodeArrivalCursor(list, { place: last, snapshot }) : null },
  }
}
