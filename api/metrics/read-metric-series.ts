import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { silenceNanoOf } from '../../clickhouse/queries/metrics/changes-by-step.ts'
import { type MetricKindRow, selectMetricKinds } from '../../clickhouse/queries/metrics/select-metric-kinds.ts'
import { type SeriesRow, selectMetricSeries } from '../../clickhouse/queries/metrics/select-metric-series.ts'
import {
  type Aggregation,
  type MetricSeries,
  type MetricSeriesQuery,
  metricSeriesQuerySchema,
  readMetricSeries,
} from '../../schemas/http/metrics.ts'
import type { Route } from '../../shared/http/route.ts'
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

/** Returns the route that reads series of a metric (docs/api/metrics.md#metric-series). */
export function readMetricSeriesRoute(deps: Deps): Route {
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
    series: rows.map(row => presentSeries(row, groupBy, steps.count, quantile !== undefined)),
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
