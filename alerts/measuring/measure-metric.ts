import { createHash } from 'node:crypto'
import { NAME_LABEL } from '../../promql/expression.ts'
import { PromqlError } from '../../promql/promql-error.ts'
import { parseSeriesQuery, querySeries } from '../../promql/query-series.ts'
import { seriesText } from '../../promql/series-text.ts'
import type { Labels, Series, Value } from '../../promql/vector.ts'
import type { AlertRule } from '../../schemas/records/alerts.ts'
import { base32 } from '../../shared/ids/base32.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import {
  type Measure,
  type MeasureDeps,
  READINGS_MAX,
  type Reading,
  SUBJECTS_MAX,
  type Subject,
  timesOf,
} from './reading.ts'

/** Most characters of the labels of a series, and of the name of a value. */
const [SERIES_MAX, NAME_MAX] = [500, 200]
/** JSON has no infinity. */
const VALUE_MAX = 1e300

/** Measures the expression of a rule over metrics. Each series of its result is a subject. A time without a value meets nothing. */
export async function measureMetric(
  { clickhouse }: Pick<MeasureDeps, 'clickhouse'>,
  { workspaceId, rule, instants }: Parameters<Measure>[1],
  signal: AbortSignal,
): Promise<Reading[]> {
  const { metric } = rule
  const times = timesOf(instants)
  const [startMs] = times
  if (metric === undefined || startMs === undefined) return []
  try {
    const grid = { startMs, stepMs: instants.stepMs, count: times.length }
    const expression = parseSeriesQuery(metric.expression)
    const value = await querySeries(clickhouse, { workspaceId, expression, grid }, signal)
    return readingsOf(seriesOf(value), metric, times)
  } catch (error) {
    if (!(error instanceof PromqlError)) throw error
    throw new PermanentError(`the expression of the rule cannot be evaluated: ${error.message}`, { cause: error })
  }
}

type Metric = NonNullable<AlertRule['metric']>

/** A scalar is a series without labels. */
function seriesOf(value: Value): readonly Series[] {
  if (value.type === 'vector') return value.series
  if (value.type === 'string') return []
  return [{ labels: new Map(), values: value.values, has: new Uint8Array(value.values.length).fill(1) }]
}

function readingsOf(series: readonly Series[], metric: Metric, times: readonly number[]): Reading[] {
  const { above, below, minutes, expression } = metric
  const threshold = above ?? below ?? 0
  const excess = (value: number) => (above === undefined ? threshold - value : value - threshold)
  const named = new Map<Series, { readonly subject: Subject; readonly what: string }>()
  const nameOf = (one: Series) => {
    const known = named.get(one) ?? describe(one.labels, expression)
    named.set(one, known)
    return known
  }
  const limit = Math.min(SUBJECTS_MAX, Math.floor(READINGS_MAX / times.length))
  return times.flatMap((atMs, step) => {
    const valueAt = (one: Series) => one.values[step] as number
    const meeting = series.filter(one => one.has[step] === 1 && excess(valueAt(one)) > 0)
    const most =
      meeting.length > limit
        ? meeting.toSorted((a, b) => excess(valueAt(b)) - excess(valueAt(a))).slice(0, limit)
        : meeting
    return most.map(one => {
      const { subject, what } = nameOf(one)
      const value = Math.max(-VALUE_MAX, Math.min(VALUE_MAX, valueAt(one)))
      return { atMs, subject, measured: { what, value, threshold, unit: '', minutes, expression } }
    })
  })
}

/** Returns the series as a subject, and how its value is called: by the series, and by the expression where that has no name. */
function describe(labels: Labels, expression: string): { subject: Subject; what: string } {
  const text = seriesText(labels)
  const digest = () => base32(createHash('sha256').update(text).digest(), 26)
  const series = text.length > SERIES_MAX ? `${text.slice(0, SERIES_MAX).toWellFormed()}… ${digest()}` : text
  const what = labels.size === 0 ? expression : labels.has(NAME_LABEL) ? text : `${text} of ${expression}`
  const service = labels.get('service.name')
  return {
    subject: { series, ...(service !== undefined && { service: service.slice(0, NAME_MAX).toWellFormed() }) },
    what: what.slice(0, NAME_MAX).toWellFormed(),
  }
}
