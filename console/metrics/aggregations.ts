import type { MetricKind, MetricSeries } from '../api/generated/client.ts'
import { type ValueFormat, valueFormat } from './units.ts'

/** A choice of how points are aggregated: its value in the address, and its name. */
type Choice = readonly [value: string, text: string]

const OF_VALUES: readonly Choice[] = [
  ['', 'Average'],
  ['last', 'Last'],
  ['max', 'Maximum'],
  ['min', 'Minimum'],
  ['sum', 'Sum of the series'],
]
const OF_CHANGES: readonly Choice[] = [
  ['', 'Rate a second'],
  ['sum', 'Change'],
]
const OF_OBSERVATIONS: readonly Choice[] = [
  ['', 'Average'],
  ['rate', 'Observations a second'],
  ['sum', 'Sum of observations'],
]
const QUANTILES: readonly Choice[] = [
  ['p50', 'p50'],
  ['p75', 'p75'],
  ['p90', 'p90'],
  ['p95', 'p95'],
  ['p99', 'p99'],
]

/** Returns the aggregations that fit a kind of points (docs/api/metrics.md#metric-series), its default first. */
export function aggregationsOf({ type, temporality, isMonotonic }: MetricKind): readonly Choice[] {
  if (type === 'histogram' || type === 'exponential_histogram') return [...OF_OBSERVATIONS, ...QUANTILES]
  if (type === 'summary') return OF_OBSERVATIONS
  if (type === 'sum' && (isMonotonic === true || temporality === 'delta')) return OF_CHANGES
  return OF_VALUES
}

/** Returns the parameters of an aggregation of the address: `p95` is a quantile. */
export function aggregationOf(text: string | null): { aggregation?: MetricSeries['aggregation']; quantile?: number } {
  if (!text) return {}
  const percent = /^p(\d{1,2})$/.exec(text)?.[1]
  if (percent !== undefined) return { aggregation: 'quantile', quantile: Number(percent) / 100 }
  return { aggregation: text as MetricSeries['aggregation'] }
}

/** Returns labels from `key=value, key=value` in JSON. A part without a key is left out. */
export function labelsOf(text: string | null): string | undefined {
  const pairs = (text ?? '').split(',').flatMap(part => {
    const at = part.indexOf('=')
    return at > 0 ? [[part.slice(0, at).trim(), part.slice(at + 1).trim()] as const] : []
  })
  return pairs.length > 0 ? JSON.stringify(Object.fromEntries(pairs)) : undefined
}

/** Returns the format of the values of series: in the unit of the metric, unless they count observations. */
export function formatOf({ kind, aggregation }: Pick<MetricSeries, 'kind' | 'aggregation'>): ValueFormat {
  const isRate = aggregation === 'rate'
  return valueFormat(isRate && kind.type !== 'sum' ? '' : kind.unit, { isRate })
}
