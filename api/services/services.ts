import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type LastReleaseRow,
  type OperationRow,
  type RatesFilter,
  type RatesRow,
  type ServiceRow,
  type StepRow,
  selectLastReleases,
  selectOperations,
  selectServiceSteps,
  selectServices,
  selectServicesBefore,
  selectVersionRates,
  type VersionRow,
} from '../../clickhouse/queries/services/select-span-rates.ts'
import {
  LAST_RELEASE_DAYS,
  listServices,
  listServicesQuerySchema,
  OPERATIONS_MAX,
  readService,
  readServiceQuerySchema,
  type Service,
  type ServiceDetails,
  type ServicesPage,
  SPAN_KINDS,
} from '../../schemas/http/services.ts'
import { DAY_S } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage, decodeCursor, digestOf, encodeCursor, INVALID_CURSOR, OTHER_LIST } from '../http/cursor.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { filterOf, presentRange, type Range, rangeOf, SERVICES } from './range.ts'
import { milliseconds, NO_SPANS, presentRates, selectRates } from './rates.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
  /** Slots for reads of the statistics of spans. */
  readonly serviceReads: Pick<FairSlots, 'run'>
}

/** Returns the routes of services. */
export function serviceRoutes(deps: Deps): Route[] {
  return [listServicesRoute(deps), readServiceRoute(deps)]
}

/** Later pages have the range of the first one. */
const cursorSchema = z
  .tuple([z.string(), z.iso.datetime(), z.iso.datetime(), z.number().int().min(1).max(100_000)])
  .transform(([list, from, to, offset]) => ({ list, from, to, offset }))

/** Returns the route that lists services by their number of spans (docs/api/services.md#services). */
function listServicesRoute(deps: Deps): Route {
  return guardedRoute(deps, listServices, {
    resource: SERVICES,
    query: listServicesQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<ServicesPage>> {
      const { limit, cursor, surface, environment, from, to } = query
      const list = digestOf(['services', workspaceId, surface, environment, from, to])
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      if (after.value && after.value.list !== list) return OTHER_LIST
      const range = rangeOf(after.value ?? query, deps.now())
      if (!range.ok) return after.value ? INVALID_CURSOR : range
      const filter = filterOf(workspaceId, range.value, query)
      const read = async (): Promise<ServicesPage> => {
        const offset = after.value?.offset ?? 0
        const all = await selectRates(deps.clickhouse, filter, deadline)
        const times = presentRange(range.value)
        const { shown, nextCursor } = cutPage(all.slice(offset, offset + limit + 1), limit, () =>
          encodeCursor([list, times.from, times.to, offset + limit]),
        )
        const services = await completeServices(deps.clickhouse, { filter, range: range.value, rows: shown }, deadline)
        return { ...times, services, nextCursor }
      }
      return { ok: true, value: await deps.serviceReads.run(workspaceId, read, deadline) }
    },
  })
}

/** Returns the route that reads a service (docs/api/services.md#service). */
function readServiceRoute(deps: Deps): Route {
  const { clickhouse } = deps
  return guardedRoute(deps, readService, {
    resource: SERVICES,
    query: readServiceQuerySchema,
    async run({ workspaceId, query, param, deadline }): Promise<Outcome<ServiceDetails>> {
      const range = rangeOf(query, deps.now())
      if (!range.ok) return range
      const filter = { ...filterOf(workspaceId, range.value, query), serviceName: param('name') }
      const read = async (): Promise<Outcome<ServiceDetails>> => {
        const rows = await selectRates(clickhouse, filter, deadline)
        const [service] = await completeServices(clickhouse, { filter, range: range.value, rows }, deadline)
        if (service === undefined) return notFound(SERVICES)
        const isEntry = service.counts === 'entries'
        const [operations, versions] = await Promise.all([
          selectOperations(clickhouse, filter, OPERATIONS_MAX, deadline),
          selectVersionRates(clickhouse, filter, { isEntry, limit: OPERATIONS_MAX }, deadline),
        ])
        const details = { operations: operations.map(presentOperation), versions: versions.map(presentVersion) }
        return { ok: true, value: { ...presentRange(range.value), ...service, ...details } }
      }
      return deps.serviceReads.run(workspaceId, read, deadline)
    },
  })
}

interface Rates {
  readonly filter: RatesFilter
  readonly range: Range
  readonly rows: readonly ServiceRow[]
}

/** Adds the steps of services, and the same range of the day before. */
async function completeServices(
  clickhouse: ClickHouseClient,
  { filter, range, rows }: Rates,
  signal: AbortSignal,
): Promise<Service[]> {
  if (rows.length === 0) return []
  const { fromSeconds, toSeconds, stepSeconds, count } = range
  const earlier = { ...filter, fromSeconds: fromSeconds - DAY_S, toSeconds: toSeconds - DAY_S }
  const serviceNames = rows.map(({ serviceName }) => serviceName)
  const week = { ...filter, fromSeconds: toSeconds - LAST_RELEASE_DAYS * DAY_S }
  const [steps, before, releases] = await Promise.all([
    selectServiceSteps(clickhouse, filter, { serviceNames, stepSeconds }, signal),
    selectServices(clickhouse, earlier, signal),
    selectLastReleases(clickhouse, week, serviceNames, signal),
  ])
  const seconds = toSeconds - fromSeconds
  const sinceSeconds = week.fromSeconds - seconds
  const beforeReleases = await selectServicesBefore(
    clickhouse,
    { ...filter, fromSeconds: sinceSeconds },
    { releases, seconds },
    signal,
  )
  const keyOf = ({ serviceName, isEntry }: ServiceRow) => `${isEntry} ${serviceName}`
  const stepsOf = Map.groupBy(steps, keyOf)
  const beforeOf = new Map(before.map(row => [keyOf(row), row]))
  const releaseOf = new Map(releases.map(release => [release.serviceName, release]))
  const beforeReleaseOf = new Map(beforeReleases.map(row => [keyOf(row), row]))
  return rows.map(row => ({
    name: row.serviceName,
    counts: row.isEntry ? 'entries' : 'all',
    ...presentRates(row),
    dayBefore: presentRates(beforeOf.get(keyOf(row)) ?? NO_SPANS),
    lastRelease: presentRelease(releaseOf.get(row.serviceName), beforeReleaseOf.get(keyOf(row)) ?? NO_SPANS),
    steps: presentSteps(stepsOf.get(keyOf(row)) ?? [], count),
  }))
}

function presentRelease(release: LastReleaseRow | undefined, before: RatesRow): Service['lastRelease'] {
  if (release === undefined) return null
  const { version, at } = release
  return { version, at: rfc3339FromUnixMs(1_000 * at), before: presentRates(before) }
}

function presentSteps(rows: readonly StepRow[], count: number): Service['steps'] {
  const byStep = new Map(rows.map(row => [row.step, row]))
  const all = Array.from({ length: count }, (_, step) => byStep.get(step) ?? NO_SPANS)
  return {
    spans: all.map(row => Number(row.count)),
    errors: all.map(row => Number(row.errors)),
    p95Ms: all.map(row => presentRates(row).durationMs?.p95 ?? null),
  }
}

function presentOperation(row: OperationRow): ServiceDetails['operations'][number] {
  return {
    name: row.operation,
    kind: SPAN_KINDS[row.kind] ?? 'unspecified',
    ...presentRates(row),
    slowest: { traceId: row.slowestTraceId, durationMs: milliseconds(Number(row.slowest)) },
  }
}

function presentVersion({
  version,
  environment,
  first,
  last,
  ...rates
}: VersionRow): ServiceDetails['versions'][number] {
  const timeOf = (seconds: string) => rfc3339FromUnixMs(1_000 * Number(seconds))
  return { version, environment, firstAt: timeOf(first), lastAt: timeOf(last), ...presentRates(rates) }
}
