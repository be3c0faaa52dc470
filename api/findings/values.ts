import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectFinding } from '../../clickhouse/queries/findings/select-finding.ts'
import {
  countOccurrences,
  selectFindingPeople,
  selectFindingValues,
  VALUE_COLUMNS,
  type ValueRow,
} from '../../clickhouse/queries/findings/select-finding-values.ts'
import { type OccurrenceRange, selectStartOfNewest } from '../../clickhouse/queries/findings/select-newest.ts'
import {
  EXAMINED_MAX,
  EXAMINED_NEWEST,
  type FindingRangeQuery,
  type FindingValues,
  findingRangeQuerySchema,
  readFindingValues,
  VALUES_MAX,
  type ValueCounts,
} from '../../schemas/http/findings/occurrences.ts'
import type { Route } from '../../shared/http/route.ts'
import { type CurrentFindingDeps, readCurrentFinding } from '../http/current-finding.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { receivedRange } from './occurrences.ts'

/** Dependencies of the values of a finding. */
interface ValuesDeps extends CurrentFindingDeps {
  readonly now: () => number
}

/** Returns the route that reads whom a finding has hit, and where (docs/api/findings.md#occurrences). */
export function readValuesRoute(deps: GuardedRouteDeps & ValuesDeps): Route {
  return guardedRoute(deps, readFindingValues, {
    resource: FINDINGS,
    query: findingRangeQuerySchema,
    run: ({ param, caller, ...request }) =>
      readValues(deps, request, param('findingId'), { people: caller.permissions.has('org:sessions:read') }),
  })
}

/** Reads whom a finding has hit, and where. `people` states whether the caller may see who they are. */
export async function readValues(
  deps: ValuesDeps,
  { workspaceId, query, deadline }: CallerRead<FindingRangeQuery>,
  askedId: string,
  { people }: { readonly people: boolean },
): Promise<Outcome<FindingValues>> {
  const asked = { workspaceId, findingId: askedId }
  const values = await readCurrentFinding(deps, asked, deadline, ({ findingIds, variantIds }) => {
    const range = { workspaceId, findingIds, variantIds, ...receivedRange(query, deps.now()) }
    return loadValues(deps.clickhouse, range, people, deadline)
  })
  return values === undefined ? notFound(FINDINGS) : { ok: true, value: values }
}

/** Loads the values of findings. Returns undefined if they have never occurred. */
async function loadValues(
  clickhouse: ClickHouseClient,
  range: OccurrenceRange,
  showsPeople: boolean,
  deadline: AbortSignal,
): Promise<FindingValues | undefined> {
  const occurrenceCount = await countOccurrences(clickhouse, range, deadline)
  if (occurrenceCount === 0 && (await selectFinding(clickhouse, range, deadline)) === undefined) return undefined
  const fromMs =
    occurrenceCount > EXAMINED_NEWEST
      ? await selectStartOfNewest(clickhouse, range, EXAMINED_NEWEST, deadline)
      : range.fromMs
  const newest = { ...range, fromMs, occurrences: EXAMINED_MAX, values: VALUES_MAX }
  const [rows, people] = await Promise.all([
    selectFindingValues(clickhouse, newest, deadline),
    selectFindingPeople(clickhouse, newest, deadline),
  ])
  const examinedCount = Number(rows[0]?.examined ?? 0)
  const anonymous = people.find(({ identifier }) => identifier === '')
  const top = people
    .filter(({ identifier }) => identifier !== '')
    .slice(0, VALUES_MAX)
    .map(({ identifier, sessions, occurrences }) => ({
      identifier,
      sessionCount: Number(sessions),
      occurrenceCount: Number(occurrences),
    }))
  const [versions, browsers, systems, routes, environments, hosts] = VALUE_COLUMNS.map(column =>
    countsOf(
      rows.filter(({ kind }) => kind === column),
      examinedCount,
    ),
  ) as [ValueCounts, ValueCounts, ValueCounts, ValueCounts, ValueCounts, ValueCounts]
  return {
    // Occurrences may arrive between the two reads.
    occurrenceCount: Math.max(occurrenceCount, examinedCount),
    examinedCount,
    people: { identifiedCount: Number(people[0]?.people ?? 0), ...(showsPeople && { top }) },
    sessionCount: Number(people[0]?.allSessions ?? 0),
    anonymousSessionCount: Number(anonymous?.sessions ?? 0),
    ...{ versions, browsers, systems, routes, environments, hosts },
  }
}

/** Returns how often the values of a kind occurred. The empty value is the absent one. */
function countsOf(rows: readonly ValueRow[], examined: number): ValueCounts {
  const absentCount = Number(rows.find(({ value }) => value === '')?.total ?? 0)
  const values = rows
    .filter(({ value }) => value !== '')
    .slice(0, VALUES_MAX)
    .map(({ value, total }) => ({
      value,
      count: Number(total),
      share: Math.round((Number(total) / examined) * 10_000) / 10_000,
    }))
  const listed = values.reduce((sum, { count }) => sum + count, 0)
  return {
    values,
    distinctCount: Number(rows[0]?.distinctCount ?? 0) - (absentCount > 0 ? 1 : 0),
    otherCount: examined - absentCount - listed,
    absentCount,
  }
}
