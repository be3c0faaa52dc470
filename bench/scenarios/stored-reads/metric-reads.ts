import type { MetricSeries, MetricsPage } from '../../../schemas/http/metrics.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import { addressOf, COUNTER_NAMES, countHosts, HISTOGRAM_NAMES, METRIC_COUNT } from '../../data/fill-points.ts'
import type { CheckedRead } from '../../measure/reads/checked-reads.ts'

const STEP_SECONDS = 300

/** Response of the interface of Prometheus to a range query. */
interface Matrix {
  readonly data: { readonly result: readonly { readonly values: readonly unknown[] }[] }
}

/** Returns the reads of points. */
export function metricReads(points: number, endMs: number): CheckedRead[] {
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
  const series = (
    name: string,
    metric: (i: number) => string,
    query: (i: number) => Record<string, string>,
  ): CheckedRead => ({
    name: `metrics: ${name}`,
    atLeast: steps,
    path: i =>
      `/v3/metrics/${metric(i)}/series?${new URLSearchParams({ ...query(i), ...bounds(day(i)), step: String(STEP_SECONDS) })}`,
    count: body => countValues(JSON.parse(body) as MetricSeries),
  })
  const names = (name: string, period: (i: number) => Period): CheckedRead => ({
    name: `metrics: names, ${name}`,
    atLeast: METRIC_COUNT,
    path: i => `/v3/metrics?${new URLSearchParams({ ...bounds(period(i)), limit: '100' })}`,
    count: body => (JSON.parse(body) as MetricsPage).metrics.length,
  })
  const quantile = { groupBy: '["http.route"]', aggregation: 'quantile', quantile: '0.95' }
  return [
    series('one series, a day', counter, i => ({ filter: JSON.stringify({ 'server.address': address(i) }) })),
    series('rate by route, a day', counter, () => ({ groupBy: '["http.route"]' })),
    series('quantile of a histogram by route, a day', histogram, () => quantile),
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
    },
  ]
}

interface Period {
  readonly fromMs: number
  readonly toMs: number
}

function bounds({ fromMs, toMs }: Period): Record<'from' | 'to', string> {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
}

function countValues({ series }: MetricSeries): number {
  return series.reduce((sum, { values }) => sum + values.filter(value => value !== null).length, 0)
}
