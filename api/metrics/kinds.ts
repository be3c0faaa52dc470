import type { MetricKindRow } from '../../clickhouse/queries/metrics/select-metric-kinds.ts'
import type { Aggregation, MetricKind } from '../../schemas/http/metrics.ts'

/** A kind of points, as stored. */
type StoredKind = Pick<MetricKindRow, 'type' | 'unit' | 'temporality' | 'isMonotonic'>

/** Returns a kind without the fields that its type does not have. */
export function presentKind({ type, unit, temporality, isMonotonic }: StoredKind): MetricKind {
  return {
    type,
    unit,
    ...(hasTemporality(type) && { temporality }),
    ...(type === 'sum' && { isMonotonic }),
  }
}

/** Aggregations of a kind (docs/api/metrics.md#metric-series), and how a message names it. */
interface FittingAggregations {
  /** The default first. None if points of this kind cannot be aggregated. */
  readonly aggregations: readonly Aggregation[]
  readonly named: string
}

const OF_SAMPLES = ['average', 'last', 'max', 'min', 'sum'] as const
const OF_CHANGES = ['rate', 'sum'] as const
const OF_DISTRIBUTIONS = ['average', 'rate', 'sum'] as const

/** Returns the aggregations that fit a kind. */
export function fittingAggregations(kind: StoredKind): FittingAggregations {
  if (hasTemporality(kind.type) && kind.temporality === 'unspecified') {
    return { aggregations: [], named: 'points without an aggregation temporality' }
  }
  switch (kind.type) {
    case 'gauge':
      return { aggregations: OF_SAMPLES, named: 'a gauge' }
    case 'sum':
      return isSampled(kind)
        ? { aggregations: OF_SAMPLES, named: 'a cumulative sum that is not monotonic' }
        : { aggregations: OF_CHANGES, named: kind.isMonotonic ? 'a monotonic sum' : 'a delta sum' }
    case 'histogram':
      return { aggregations: [...OF_DISTRIBUTIONS, 'quantile'], named: 'a histogram' }
    case 'exponential_histogram':
      return { aggregations: [...OF_DISTRIBUTIONS, 'quantile'], named: 'an exponential histogram' }
    case 'summary':
      return { aggregations: OF_DISTRIBUTIONS, named: 'a summary' }
  }
}

/** Returns whether points of this kind are values of their moment, and no counts. */
export function isSampled({ type, temporality, isMonotonic }: StoredKind): boolean {
  return type === 'gauge' || (type === 'sum' && !isMonotonic && temporality === 'cumulative')
}

/** Returns the temporalities of points that are aggregated with those of this kind, because both count the same. */
export function temporalitiesWith(kind: StoredKind): readonly StoredKind['temporality'][] {
  const isCount = kind.type !== 'sum' || kind.isMonotonic
  return hasTemporality(kind.type) && isCount ? ['delta', 'cumulative'] : [kind.temporality]
}

function hasTemporality(type: StoredKind['type']): boolean {
  return type !== 'gauge' && type !== 'summary'
}
