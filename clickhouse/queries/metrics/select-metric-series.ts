import { type Aggregation, type MetricKind, SERIES_MAX, UNIT_CHARACTERS } from '../../../schemas/http/metrics.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { keyPattern } from '../attributes/attribute-text.ts'
import { changesByStep, silenceNanoOf } from './changes-by-step.ts'
import { IS_RECORDED, labelColumn, POINTS_SETTINGS, type PointsFilter, pointsCondition } from './metric-points.ts'
import { samplesByStep } from './samples-by-step.ts'

/** Selects series. */
interface SeriesSearch {
  /** Its range has whole steps. */
  readonly filter: PointsFilter
  readonly name: string
  readonly kind: Pick<MetricKind, 'type' | 'unit'> & {
    readonly temporalities: readonly NonNullable<MetricKind['temporality']>[]
    readonly isMonotonic: boolean
  }
  /** Whether points are values of their moment. If not, they count since a start or since the point before. */
  readonly isSampled: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly groupBy: readonly string[]
  readonly stepSeconds: number
  readonly aggregation: Aggregation
  readonly quantile: number | undefined
}

/** A series. */
export interface SeriesRow {
  /** Values of the labels of `groupBy`, empty for those that the points do not have. */
  readonly labels: readonly string[]
  /** Bounds of buckets, for a quantile. */
  readonly bounds: readonly number[]
  /** Values by the number of their step. */
  readonly points: readonly (readonly [step: number, value: number | null])[]
  /** Number of all series. */
  readonly seriesCount: string
}

/** Returns the first series in the order of their labels. */
export function selectMetricSeries(
  client: ClickHouseClient,
  search: SeriesSearch,
  signal: AbortSignal,
): Promise<SeriesRow[]> {
  const { filter, name, kind, labels, groupBy, isSampled, stepSeconds, quantile } = search
  const stepNano = BigInt(stepSeconds) * 1_000_000_000n
  const silenceNano = silenceNanoOf(stepSeconds)
  // The first and the last step need the points beside them, from which values have changed.
  const points = pointsCondition(isSampled ? filter : widened(filter, silenceNano))
  const filters = Object.entries(labels)
  const conditions = [
    points.sql,
    'metric_name = {name: String}',
    'type = {type: String}',
    `leftUTF8(unit, ${UNIT_CHARACTERS}) = {unit: String}`,
    'aggregation_temporality IN {temporalities: Array(String)}',
    'is_monotonic = {isMonotonic: UInt8}',
    IS_RECORDED,
    ...filters.map(([label], i) => `${labelColumn(label, `filterKey${i}`)} = {filterValue${i}: String}`),
  ]
  const groups = groupBy.map((label, i) => labelColumn(label, `group${i}`)).join(', ')
  const source = { where: conditions.join(' AND '), labels: `CAST([${groups}], 'Array(String)')` }
  const byStep = isSampled ? samplesByStep(search, source) : changesByStep(search, source)
  const query = `
    SELECT labels, bounds, groupArray((step, value)) AS points, count() OVER () AS seriesCount
    FROM (${byStep})
    GROUP BY labels, bounds ORDER BY labels, bounds LIMIT ${SERIES_MAX}`
  const params = {
    ...points.params,
    ...{ name, type: kind.type, unit: kind.unit, temporalities: kind.temporalities },
    isMonotonic: kind.isMonotonic ? 1 : 0,
    ...Object.fromEntries(
      filters.flatMap(([key, value], i) => [
        [`filterKey${i}`, keyPattern(key)],
        [`filterValue${i}`, value],
      ]),
    ),
    ...Object.fromEntries(groupBy.map((label, i) => [`group${i}`, keyPattern(label)])),
    firstStep: String(filter.fromNano / stepNano),
    firstNano: String(filter.fromNano),
    endNano: String(filter.toNano),
    stepNano: String(stepNano),
    silenceNano: String(silenceNano),
    stepSeconds,
    quantile,
  }
  return selectRows<SeriesRow>(client, { query, params, signal, settings: POINTS_SETTINGS })
}

function widened(filter: PointsFilter, byNano: bigint): PointsFilter {
  const { fromNano, toNano } = filter
  return { ...filter, fromNano: fromNano > byNano ? fromNano - byNano : 0n, toNano: toNano + byNano }
}
