import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { FindingRow } from '../../clickhouse/queries/findings/finding-row.ts'
import type { FindingsFilter } from '../../clickhouse/queries/findings/findings-filter.ts'
import {
  type Buckets,
  OCCURRED_COUNT_MAX,
  selectFindingsCounts,
  selectOccurredCounts,
} from '../../clickhouse/queries/findings/select-finding-counts.ts'
import { selectFindings } from '../../clickhouse/queries/findings/select-findings.ts'
import { selectFindingsPage } from '../../clickhouse/queries/findings/select-findings-page.ts'
import { selectFindingsSnapshot } from '../../clickhouse/queries/findings/select-findings-snapshot.ts'
import type { MergedWorkspace } from '../../findings/standing.ts'
import { listFindings } from '../../schemas/http/findings/operations.ts'
import {
  type FindingsPage,
  LIST_BUCKETS_MAX,
  type ListFindingsQuery,
  listFindingsQuerySchema,
} from '../../schemas/http/findings/schemas.ts'
import type { LISTED_STATUSES } from '../../schemas/http/findings/work.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage } from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS } from '../http/resource.ts'
import { decodeArrivalCursor, encodeArrivalCursor } from './arrival-cursor.ts'
import { titlesBy } from './explain-grouping.ts'
import { chooseBuckets, presentFinding, type RequestedTime } from './load-finding.ts'
import { loadStandings } from './work/load-standings.ts'
import { resolvedFindings } from './work/resolved-findings.ts'

interface Deps extends GuardedRouteDeps, ChooseDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for the queries that search for a page. */
  readonly findingLists: Pick<FairSlots, 'run'>
  readonly now: () => number
}

/** Returns the route that lists the findings of a workspace, by the latest arrival first (docs/api/findings.md#findings). */
export function listFindingsRoute(deps: Deps): Route {
  return guardedRoute(deps, listFindings, {
    resource: FINDINGS,
    query: listFindingsQuerySchema,
    run: request => readFindingsPage(deps, request),
  })
}

/** Reads a page of findings. All pages of a list show what was stored when its first page was read. */
export async function readFindingsPage(
  deps: Omit<Deps, keyof GuardedRouteDeps>,
  { workspaceId, query, deadline }: CallerRead<ListFindingsQuery>,
): Promise<Outcome<FindingsPage>> {
  const { clickhouse } = deps
  const { limit, cursor, surface, service, from, to, q, status, occurrences: wantsCounts, times } = query
  const filter = {
    surfaceId: surface,
    serviceName: service,
    fromMs: from === undefined ? undefined : Date.parse(from),
    toMs: to === undefined ? undefined : Date.parse(to),
    text: q,
  }
  const list = ['findings', workspaceId, surface, service, filter.fromMs, filter.toMs, q, ...(status ? [status] : [])]
  const after = decodeArrivalCursor(list, cursor, deps.now())
  if (!after.ok) return after
  const [snapshot, merges] = await Promise.all([
    after.value?.snapshot ?? selectFindingsSnapshot(clickhouse, deadline),
    queryDirectory(deps.directory.findingMerges(workspaceId)),
  ])
  const workspace = { workspaceId, merges }
  const search = async () => {
    const chosen = status && (await chooseFindings(deps, workspace, status, deadline))
    const page = { ...workspace, snapshot, filter: { ...filter, chosen }, limit: limit + 1, after: after.value?.last }
    return selectFindingsPage(clickhouse, page, deadline)
  }
  const arrivals = await deps.findingLists.run(workspaceId, search, deadline)
  const { shown, nextCursor } = cutPage(arrivals, limit, last => encodeArrivalCursor(list, { last, snapshot }))
  const findingIds = shown.map(({ id }) => id)
  const buckets = wantsCounts === 'true' ? bucketsOf(filter, deps.now()) : undefined
  const loaded = selectFindings(clickhouse, { ...workspace, findingIds }, deadline)
  const [rows, rules, standings, counts] = await Promise.all([
    loaded,
    queryDirectory(deps.directory.findingRules(workspaceId)),
    loadStandings(deps, workspace, findingIds, deadline),
    buckets && countOccurrences(clickhouse, { ...workspace, findingIds, times, loaded }, buckets, deadline),
  ])
  const rowsById = new Map(rows.map(row => [row.id, row]))
  const titleOf = titlesBy(workspaceId, rules?.rules ?? [])
  // A finding can expire between the two queries.
  const known = findingIds.flatMap((id, i) => {
    const row = rowsById.get(id)
    return row === undefined
      ? []
      : [{ finding: presentFinding(row, standings.get(id), titleOf(row)), counts: counts?.counts[i] ?? [] }]
  })
  const findings = known.map(({ finding }) => finding)
  if (buckets === undefined) return { ok: true, value: { findings, nextCursor } }
  const occurrences = {
    from: rfc3339FromUnixMs(buckets.from * 1_000),
    to: rfc3339FromUnixMs(buckets.to * 1_000),
    bucketSeconds: buckets.bucketSeconds,
    counts: known.map(entry => entry.counts),
    ...(times && counts && { times: counts.times }),
  }
  return { ok: true, value: { findings, nextCursor, occurrences } }
}

interface CountedFindings extends MergedWorkspace {
  readonly findingIds: readonly string[]
  readonly times: ListFindingsQuery['times']
  readonly loaded: Promise<readonly FindingRow[]>
}

/** Counts the occurrences of findings by the requested times, or by their arrivals if they are too many. */
async function countOccurrences(
  clickhouse: ClickHouseClient,
  { times = 'received', loaded, ...findings }: CountedFindings,
  buckets: Buckets,
  signal: AbortSignal,
) {
  const sum = async () => (await loaded).reduce((total, row) => total + Number(row.occurrenceCount), 0)
  const counted = times === 'occurred' && (await sum()) <= OCCURRED_COUNT_MAX ? 'occurred' : 'received'
  const select = counted === 'occurred' ? selectOccurredCounts : selectFindingsCounts
  return { times: counted, counts: await select(clickhouse, findings, buckets, signal) } as const
}

/** Returns the buckets of the requested time, or of the last 24 hours. */
function bucketsOf({ fromMs, toMs }: Pick<RequestedTime, 'fromMs' | 'toMs'>, nowMs: number): Buckets {
  return chooseBuckets({ fromMs, toMs, firstMs: (toMs ?? nowMs) - DAY_MS, nowMs }, LIST_BUCKETS_MAX)
}

/** Stores from which the findings of a status are chosen. */
interface ChooseDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<
    Directory,
    'findingWork' | 'findingMerges' | 'resolvedFindings' | 'ignoredFindings' | 'countedFindings' | 'findingRules'
  >
  readonly now: () => number
}

type Chosen = NonNullable<FindingsFilter['chosen']>

/**
 * Returns which findings of a workspace have a status: those of a set, or for `open` and `unresolved` all but those of a set. The
 * sets are those of the directory, and have at most FINDING_WORK_MAX findings. Only resolved findings that have occurred since, and
 * ignored ones that are open again after a number of occurrences, are looked at one by one.
 */
async function chooseFindings(
  deps: ChooseDeps,
  workspace: MergedWorkspace,
  status: (typeof LISTED_STATUSES)[number],
  signal: AbortSignal,
): Promise<Chosen> {
  if (status === 'resolved' || status === 'regressed') {
    const { all, regressed } = await resolvedFindings(deps, workspace, signal)
    if (status === 'regressed') return { are: 'only', findingIds: [...regressed.keys()] }
    return { are: 'only', findingIds: all.filter(id => !regressed.has(id)) }
  }
  const ignored = await ignoredFindings(deps, workspace, signal)
  if (status === 'ignored') return { are: 'only', findingIds: ignored }
  if (status === 'unresolved') {
    const { all, regressed } = await resolvedFindings(deps, workspace, signal)
    return { are: 'not', findingIds: [...ignored, ...all.filter(id => !regressed.has(id))] }
  }
  const resolved = await queryDirectory(deps.directory.resolvedFindings(workspace.workspaceId))
  return { are: 'not', findingIds: [...ignored, ...resolved.map(({ findingId }) => findingId)] }
}

async function ignoredFindings(deps: ChooseDeps, workspace: MergedWorkspace, signal: AbortSignal): Promise<string[]> {
  const { workspaceId } = workspace
  const ignored = await queryDirectory(deps.directory.ignoredFindings(workspaceId, deps.now()))
  const counted = await queryDirectory(deps.directory.countedFindings(workspaceId))
  const standings = await loadStandings(deps, workspace, counted, signal)
  return ignored.filter(id => standings.get(id)?.status !== 'open')
}
