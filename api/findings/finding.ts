import type { z } from 'zod'
import { selectFinding } from '../../clickhouse/queries/findings/select-finding.ts'
import { type FindingTraceRow, selectFindingTraces } from '../../clickhouse/queries/findings/select-finding-traces.ts'
import { listFindingTraces, readFinding } from '../../schemas/http/findings/operations.ts'
import {
  type FindingActivityQuery,
  type FindingTrace,
  type FindingTracesPage,
  findingActivityQuerySchema,
  type findingAnswerSchema,
} from '../../schemas/http/findings/schemas.ts'
import { type PageQuery, pageQuerySchema } from '../../schemas/http/page.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import { type CurrentFindingDeps, readCurrentFinding } from '../http/current-finding.ts'
import { cutPage } from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixNano } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { decodeArrivalCursor, encodeArrivalCursor } from './arrival-cursor.ts'
import { loadFinding } from './load-finding.ts'
import { listOccurrencesRoute } from './occurrences.ts'
import { readValuesRoute } from './values.ts'
import { loadStandings, type StandingDeps } from './work/load-standings.ts'

/** Returns the routes that read one finding (docs/api/findings.md#findings). */
export function findingRoutes(deps: Deps): Route[] {
  return [readFindingRoute(deps), listFindingTracesRoute(deps), listOccurrencesRoute(deps), readValuesRoute(deps)]
}

/** Dependencies of reading a finding. */
interface DetailsDeps extends StandingDeps, CurrentFindingDeps {
  readonly directory: StandingDeps['directory'] & CurrentFindingDeps['directory'] & Pick<Directory, 'findingRules'>
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
  askedId: string,
): Promise<Outcome<z.infer<typeof findingAnswerSchema>>> {
  const finding = await readCurrentFinding(deps, { workspaceId, findingId: askedId }, deadline, async key => {
    const [found, standings] = await Promise.all([
      loadFinding(deps.clickhouse, key, query, deps.now(), deadline, {
        releaseOf: slug => queryDirectory(deps.releases.release(workspaceId, slug)),
        rules: queryDirectory(deps.directory.findingRules(workspaceId)).then(rules => rules?.rules ?? []),
      }),
      loadStandings(deps, key, [key.findingId], deadline),
    ])
    return found && { ...found, ...standings.get(key.findingId) }
  })
  return finding === undefined ? notFound(FINDINGS) : { ok: true, value: { finding } }
}

/** Returns the route that lists the traces in which a finding occurred, newest first by its first arrival in each trace. */
function listFindingTracesRoute(deps: Deps): Route {
  return guardedRoute(deps, listFindingTraces, {
    resource: FINDINGS,
    query: pageQuerySchema,
    run: ({ param, ...request }) => readFindingTraces(deps, request, param('findingId')),
  })
}

/** Dependencies of reading the traces of a finding. */
type TracesDeps = CurrentFindingDeps & Pick<DetailsDeps, 'clickhouse' | 'now'>

/** Reads a page of the traces in which a finding occurred. */
export async function readFindingTraces(
  deps: TracesDeps,
  { workspaceId, query: { limit, cursor }, deadline }: CallerRead<PageQuery>,
  askedId: string,
): Promise<Outcome<FindingTracesPage>> {
  const list = ['finding traces', workspaceId, askedId]
  const after = decodeArrivalCursor(list, cursor, deps.now())
  if (!after.ok) return after
  const rows = await readCurrentFinding(deps, { workspaceId, findingId: askedId }, deadline, async finding => {
    const page = { ...finding, limit: limit + 1, after: after.value?.last }
    const found = await selectFindingTraces(deps.clickhouse, page, deadline)
    if (found.length > 0) return found
    // A finding may have no traces, or none after the cursor.
    return (await selectFinding(deps.clickhouse, finding, deadline)) && found
  })
  if (rows === undefined) return notFound(FINDINGS)
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
