import type { MetricSeries, MetricsPage } from '../../../schemas/http/metrics.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import { addressOf, COUNTER_NAMES, countHosts, HISTOGRAM_NAMES, METRIC_COUNT } from '../../data/fill-points.ts'
import type { ComparedRead } from '../../measure/reads/compare-reads.ts'

const STEP_SECONDS = 300

/** Response of the interface of Prometheus to a range query. */
interface Matrix {
  readonly data: { readonly result: readonly { readonly values: readonly unknown[] }[] }
}

/** Returns the reads of points of a workspace. */
export function metricReads(workspaceId: string, points: number, endMs: number): ComparedRead[] {
  const lastHourMs = Math.floor(endMs / HOUR_MS) * HOUR_MS
  // Days that end with an hour of the last two days.
  const day = (i: number) => {
    const toMs = lastHourMs - (i % 48) * HOUR_MS
    return { fromMs: toMs - DAY_MS, toMs }
  }
  const hour = (i: number) => ({ ...day(i), fromMs: day(i).toMs - HOUR_MS })
  const counter = (i: number) => COUNTER_NAMES[i % COUNTER_NAMES.length] as string
  const histogram = (i: number) => HISTOGRAM_NAMES[i % HISTOGRAM_NAMES.length] as string
  const hosts = Math.ceil(countHosts(points) / 2)
  const address = (i: number) => addressOf(2 * (i % hosts))
  const steps = DAY_MS / 1_000 / STEP_SECONDS
  const where = ({ fromMs, toMs }: Period, condition: string) => `
    FROM metric_points WHERE workspace_id = '${workspaceId}' AND ${condition}
      AND time_unix_nano >= ${nanos(fromMs)} AND time_unix_nano < ${nanos(toMs)}`
  const series = (
    name: string,
    metric: (i: number) => string,
    query: (i: number) => Record<string, string>,
    alone: (i: number) => string,
  ): ComparedRead => ({
    name: `metrics: ${name}`,
    atLeast: steps,
    path: i =>
      `/v3/metrics/${metric(i)}/series?${new URLSearchParams({ ...query(i), ...bounds(day(i)), step: String(STEP_SECONDS) })}`,
    count: body => countValues(JSON.parse(body) as MetricSeries),
    alone,
  })
  const names = (name: string, period: (i: number) => Period): ComparedRead => ({
    name: `metrics: names, ${name}`,
    atLeast: METRIC_COUNT,
    path: i => `/v3/metrics?${new URLSearchParams({ ...bounds(period(i)), limit: '100' })}`,
    count: body => (JSON.parse(body) as MetricsPage).metrics.length,
    alone: i => `SELECT metric_name, any(toString(type)), any(unit), groupUniqArrayArray(mapKeys(attributes))
      ${where(period(i), 'true')} GROUP BY metric_name`,
  })
  return [
    series(
      'one series, a day',
      counter,
      i => ({ filter: JSON.stringify({ 'server.address': address(i) }) }),
      i => `SELECT ${STEP} AS step, max(as_int) - min(as_int)
        ${where(day(i), `metric_name = '${counter(i)}' AND attributes['server.address'] = '${address(i)}'`)} GROUP BY step`,
    ),
    series(
      'rate by route, a day',
      counter,
      () => ({ groupBy: '["http.route"]' }),
      i => `SELECT route, step, sum(change) FROM (
          SELECT any(attributes['http.route']) AS route, ${STEP} AS step, max(as_int) - min(as_int) AS change
          ${where(day(i), `metric_name = '${counter(i)}'`)} GROUP BY series_id, step) GROUP BY route, step`,
    ),
    series(
      'quantile of a histogram by route, a day',
      histogram,
      () => ({ groupBy: '["http.route"]', aggregation: 'quantile', quantile: '0.95' }),
      i => `SELECT route, step, sumForEach(buckets) FROM (
          SELECT any(attributes['http.route']) AS route, ${STEP} AS step, argMax(bucket_counts, time_unix_nano) AS buckets
          ${where(day(i), `metric_name = '${histogram(i)}'`)} GROUP BY series_id, step) GROUP BY route, step`,
    ),
    names('an hour', hour),
    names('a day', day),
    {
      name: 'PromQL: rate by route, a day',
      atLeast: steps,
      path: i => {
        const query = `sum by ("http.route") (rate({"${counter(i)}"}[5m]))`
        const { fromMs, toMs } = day(i)
        const range = {
          start: String(fromMs / 1_000),
          end: String(toMs / 1_000 - STEP_SECONDS),
          step: String(STEP_SECONDS),
        }
        return `/prometheus/api/v1/query_range?${new URLSearchParams({ query, ...range })}`
      },
      count: body => (JSON.parse(body) as Matrix).data.result.reduce((sum, { values }) => sum + values.length, 0),
      alone: i => `SELECT route, step, sum(change) FROM (
          SELECT any(attributes['http.route']) AS route, ${STEP} AS step, max(as_int) - min(as_int) AS change
          ${where(day(i), `metric_name = '${counter(i)}'`)} GROUP BY series_id, step) GROUP BY route, step`,
    },
  ]
}

interface Period {
  readonly fromMs: number
  readonly toMs: number
}

const STEP = `intDiv(time_unix_nano, ${STEP_SECONDS}000000000)`

const nanos = (ms: number) => BigInt(ms) * 1_000_000n

function bounds({ fromMs, toMs }: Period): Record<'from' | 'to', string> {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
}

function countValues({ series }: MetricSeries): number {
  return series.reduce((sum, { values }) => sum + values.filter(value => value !== null).length, 0)
}
