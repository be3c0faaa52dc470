import type { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type FindingTraceRow, selectFindingTraces } from '../../clickhouse/queries/findings/select-finding-traces.ts'
import { selectFindings } from '../../clickhouse/queries/findings/select-findings.ts'
import { listFindingTraces, readFinding } from '../../schemas/http/findings/operations.ts'
import {
  type FindingActivityQuery,
  type FindingTrace,
  type FindingTracesPage,
  findingActivityQuerySchema,
  type findingAnswerSchema,
  findingIdSchema,
} from '../../schemas/http/findings/schemas.ts'
import { type PageQuery, pageQuerySchema } from '../../schemas/http/page.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage } from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixNano } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { decodeArrivalCursor, encodeArrivalCursor } from './arrival-cursor.ts'
import { loadFinding } from './load-finding.ts'
import { loadStandings, type StandingDeps } from './work/standing.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
}

/** Returns the routes that read one finding (docs/api/findings.md#findings). */
export function findingRoutes(deps: Deps): Route[] {
  return [readFindingRoute(deps), listFindingTracesRoute(deps)]
}

/** Dependencies of reading a finding. */
interface DetailsDeps extends StandingDeps {
  readonly releases: Pick<ReleaseStore, 'release'>
}

interface Deps extends GuardedRouteDeps, DetailsDeps {}

/** Returns the route that reads one finding: its stack, and when and where it occurred (docs/api/findings.md#findings). */
function readFindingRoute(deps: Deps): Route {
  return guardedRoute(deps, readFinding, {
    resource: FINDINGS,
    query: findingActivityQuerySchema,
    run: ({ param, ...request }) => readFindingDetails(deps, request, param('findingId')),
  })
}

/** Reads a finding, with its standing. */
export async function readFindingDetails(
  deps: DetailsDeps,
  { workspaceId, query, deadline }: CallerRead<FindingActivityQuery>,
  findingId: string,
): Promise<Outcome<z.infer<typeof findingAnswerSchema>>> {
  if (!findingIdSchema.safeParse(findingId).success) return notFound(FINDINGS)
  const [finding, standings] = await Promise.all([
    loadFinding(deps.clickhouse, { workspaceId, findingId }, query, deps.now(), deadline, slug =>
      queryDirectory(deps.releases.release(workspaceId, slug)),
    ),
    loadStandings(deps, workspaceId, [findingId], deadline),
  ])
  if (finding === undefined) return notFound(FINDINGS)
  return { ok: true, value: { finding: { ...finding, ...standings.get(findingId) } } }
}

/** Returns the route that lists the traces in which a finding occurred, newest first by its first arrival in each trace. */
function listFindingTracesRoute(deps: Deps): Route {
  return guardedRoute(deps, listFindingTraces, {
    resource: FINDINGS,
    query: pageQuerySchema,
    run: ({ param, ...request }) => readFindingTraces(deps, request, param('findingId')),
  })
}

/** Reads a page of the traces in which a finding occurred. */
export async function readFindingTraces(
  { clickhouse, now }: Omit<Deps, keyof GuardedRouteDeps>,
  { workspaceId, query: { limit, cursor }, deadline }: CallerRead<PageQuery>,
  findingId: string,
): Promise<Outcome<FindingTracesPage>> {
  const list = ['finding traces', workspaceId, findingId]
  const after = decodeArrivalCursor(list, cursor, now())
  if (!after.ok) return after
  if (!findingIdSchema.safeParse(findingId).success) return notFound(FINDINGS)
  const page = { workspaceId, findingId, limit: limit + 1, after: after.value?.last }
  const rows = await selectFindingTraces(clickhouse, page, deadline)
  // A finding may have no traces, or none after the cursor.
  if (rows.length === 0) {
    const [finding] = await selectFindings(clickhouse, { workspaceId, findingIds: [findingId] }, deadline)
    if (finding === undefined) return notFound(FINDINGS)
  }
  const { shown, nextCursor } = cutPage(rows, limit, last => encodeArrivalCursor(list, { last }))
  return { ok: true, value: { traces: shown.map(presentTrace), nextCursor } }
}

function presentTrace(row: FindingTraceRow): FindingTrace {
  return {
    id: row.id,
    traceId: row.id,
    occurrenceCount: Number(row.occurrenceCount),
    lastSeenAt: rfc3339FromUnixNano(BigInt(row.lastSeenUnixNano)),
  }
}
