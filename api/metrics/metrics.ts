import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { silenceNanoOf } from '../../clickhouse/queries/metrics/changes-by-step.ts'
import {
  type MetricDetailsRow,
  type MetricKindRow,
  selectMetricDetails,
  selectMetricKinds,
} from '../../clickhouse/queries/metrics/select-metric-kinds.ts'
import { selectMetricNames } from '../../clickhouse/queries/metrics/select-metric-names.ts'
import { type SeriesRow, selectMetricSeries } from '../../clickhouse/queries/metrics/select-metric-series.ts'
import {
  type Aggregation,
  LABEL_KEYS_MAX,
  listMetrics,
  listMetricsQuerySchema,
  type Metric,
  type MetricSeries,
  type MetricSeriesQuery,
  type MetricsPage,
  metricSeriesQuerySchema,
  readMetricSeries,
} from '../../schemas/http/metrics.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage, decodeCursor, digestOf, encodeCursor, INVALID_CURSOR, OTHER_LIST } from '../http/cursor.ts'
import { rfc3339FromUnixNano } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { fittingAggregations, isSampled, presentKind, temporalitiesWith } from './kinds.ts'
import { METRICS, type MetricReads, readWithinLimits } from './resource.ts'
import { inNanos, type Steps, stepsOf, timeRange } from './time-range.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly metricReads: MetricReads
  readonly now: () => number
}

/** Returns the routes of metrics. */
export function metricRoutes(deps: Deps): Route[] {
  return [listMetricsRoute(deps), readMetricSeriesRoute(deps)]
}

/** All pages of a list have the range of its first one. */
const cursorSchema = z
  .tuple([
    z.string(),
    z.iso.datetime(),
    z.iso.datetime(),
    z.string().regex(/^(?:[0-9a-f]{2}){0,128}$/),
    z.string().regex(/^[0-9a-f]{32}$/),
  ])
  .transform(([list, from, to, nameStart, nameHash]) => ({ list, range: { from, to }, last: { nameStart, nameHash } }))

/** Returns the route that lists the metrics of a workspace by name (docs/api/metrics.md#metrics). */
function listMetricsRoute(deps: Deps): Route {
  const { clickhouse } = deps
  return guardedRoute(deps, listMetrics, {
    resource: METRICS,
    query: listMetricsQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<MetricsPage>> {
      const { limit, cursor, surface, service, prefix, from, to } = query
      const list = ['metrics', workspaceId, surface, service, prefix, from, to]
      const after = decodeCursor(cursorSchema, cursor)
      if (!after.ok) return after
      if (after.value && after.value.list !== digestOf(list)) return OTHER_LIST
      const range = timeRange(after.value?.range ?? query, deps.now())
      if (!range.ok) return after.value ? INVALID_CURSOR : range
      const filter = { workspaceId, surfaceId: surface, serviceName: service, ...inNanos(range.value) }
      const advice = 'request a shorter range, fewer entries or one service'
      return readWithinLimits(deps.metricReads, { workspaceId, deadline }, advice, async () => {
        const page = { filter, prefix, after: after.value?.last, limit: limit + 1 }
        const found = await selectMetricNames(clickhouse, page, deadline)
        const times = [range.value.fromMs, range.value.toMs].map(ms => new Date(ms).toISOString())
        const { shown, nextCursor } = cutPage(found, limit, ({ nameStart, nameHash }) =>
          encodeCursor([digestOf(list), ...times, nameStart, nameHash]),
        )
        const names = shown.map(({ name }) => name)
        const rows = names.length === 0 ? [] : await selectMetricDetails(clickhouse, filter, names, deadline)
        return { ok: true, value: { metrics: names.flatMap(name => presentMetric(name, rows)), nextCursor } }
      })
    },
  })
}

/** Returns a metric by the rows of its kinds, or nothing if its points have expired between the two queries. */
function presentMetric(name: string, rows: readonly MetricDetailsRow[]): Metric[] {
  const kinds = rows.filter(row => row.name === name)
  const [newest] = kinds
  if (newest === undefined) return []
  const labels = [...new Set(kinds.flatMap(kind => kind.labels))].sort()
  return [
    {
      name,
      description: newest.description,
      kinds: kinds.map(presentKind),
      labels: labels.slice(0, LABEL_KEYS_MAX),
      lastPointAt: rfc3339FromUnixNano(BigInt(newest.lastNano)),
    },
  ]
}

/** Returns the route that reads series of a metric (docs/api/metrics.md#metric-series). */
function readMetricSeriesRoute(deps: Deps): Route {
  return guardedRoute(deps, readMetricSeries, {
    resource: METRICS,
    query: metricSeriesQuerySchema,
    async run({ workspaceId, query, param, deadline }): Promise<Outcome<MetricSeries>> {
      const range = timeRange(query, deps.now())
      if (!range.ok) return range
      const steps = stepsOf(range.value, query.step)
      if (!steps.ok) return steps
      const advice = 'request a shorter range, one service, or fewer labels in groupBy'
      const request = { workspaceId, name: param('name'), query, steps: steps.value }
      const load = () => loadSeries(deps.clickhouse, request, deadline)
      return readWithinLimits(deps.metricReads, { workspaceId, deadline }, advice, load)
    },
  })
}

interface SeriesRequest {
  readonly workspaceId: string
  readonly name: string
  readonly query: MetricSeriesQuery
  readonly steps: Steps
}

async function loadSeries(
  clickhouse: ClickHouseClient,
  { workspaceId, name, query, steps }: SeriesRequest,
  signal: AbortSignal,
): Promise<Outcome<MetricSeries>> {
  const { surface, service, type, unit, quantile, filter: labels = {}, groupBy = [] } = query
  const filter = { workspaceId, surfaceId: surface, serviceName: service, ...inNanos(steps) }
  const isRequested = (kind: MetricKindRow) =>
    (type === undefined || kind.type === type) && (unit === undefined || kind.unit === unit)
  let kinds = await selectMetricKinds(clickhouse, filter, [name], signal)
  if (!kinds.some(isRequested)) {
    // The first point after the range may state a change within it.
    const later = { ...filter, toNano: filter.toNano + silenceNanoOf(steps.stepSeconds) }
    kinds = await selectMetricKinds(clickhouse, later, [name], signal)
  }
  const chosen = kinds.find(isRequested)
  if (chosen === undefined) return notFound(METRICS)
  const aggregation = chooseAggregation(chosen, query.aggregation)
  if (!aggregation.ok) return aggregation
  const temporalities = temporalitiesWith(chosen)
  const isRead = (kind: MetricKindRow) =>
    (['type', 'unit', 'isMonotonic'] as const).every(field => kind[field] === chosen[field]) &&
    temporalities.includes(kind.temporality)
  const search = {
    ...{ filter, name, labels, groupBy, quantile, aggregation: aggregation.value, stepSeconds: steps.stepSeconds },
    kind: { type: chosen.type, unit: chosen.unit, isMonotonic: chosen.isMonotonic, temporalities },
    isSampled: isSampled(chosen),
  }
  const rows = await selectMetricSeries(clickhouse, search, signal)
  const seriesCount = Number(rows[0]?.seriesCount ?? 0)
  const value = {
    name,
    kind: presentKind(chosen),
    otherKinds: kinds.filter(kind => !isRead(kind)).map(presentKind),
    aggregation: aggregation.value,
    ...(quantile !== undefined && { quantile }),
    from: new Date(steps.fromMs).toISOString(),
    to: new Date(steps.toMs).toISOString(),
    stepSeconds: steps.stepSeconds,
    seriesCount,
    truncated: rows.length < seriesCount,
    series: rows.map(row =>
      presentSeries(row, groupBy, steps.count, quantile !== undefined && chosen.type === 'histogram'),
    ),
  }
  return { ok: true, value }
}

/** Returns the requested aggregation or the default of the kind. Refuses one that does not fit. */
function chooseAggregation(kind: MetricKindRow, requested: Aggregation | undefined): Outcome<Aggregation> {
  const { aggregations, named } = fittingAggregations(kind)
  const [byDefault] = aggregations
  if (byDefault === undefined) {
    return invalid(`name is that of a metric with ${named}, which have no aggregation: let its sender set one`)
  }
  if (requested === undefined) return { ok: true, value: byDefault }
  if (aggregations.includes(requested)) return { ok: true, value: requested }
  return invalid(`aggregation must be one of ${aggregations.join(', ')} for ${named}`)
}

function presentSeries(
  { labels, bounds, points }: SeriesRow,
  groupBy: readonly string[],
  stepCount: number,
  hasBounds: boolean,
): MetricSeries['series'][number] {
  const values: (number | null)[] = Array(stepCount).fill(null)
  for (const [step, value] of points) values[step] = value
  const pairs = groupBy.map((label, i) => [label, labels[i] ?? ''] as const)
  return {
    labels: Object.fromEntries(pairs.filter(([, value]) => value !== '')),
    ...(hasBounds && { bounds: [...bounds] }),
    values,
  }
}
