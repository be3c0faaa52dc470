import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import {
  INSTANCE,
  INSTANCE_LABEL,
  type LabelMatcher,
  labelsCondition,
  labelsOf,
  type PackedAttributes,
} from './label-matchers.ts'
import { BUCKETS, IS_RECORDED, POINTS_SETTINGS, type PointsFilter, pointsCondition } from './metric-points.ts'
import { HAS_NUMBER, NUMBER } from './samples-by-step.ts'

/** The part of points that is read as a number: the value of gauges and sums, or a part of distributions. */
export type SamplePart = 'value' | 'count' | 'sum' | 'bucket'

/**
 * Segments of time. Step n ends at `baseMs + n * stepMs`, inclusive. Its last `remainderMs` are a segment of their own, so that
 * a window of time which ends with a step, and whose length is not a multiple of steps, consists of whole segments.
 */
interface SegmentGrid {
  readonly baseMs: number
  readonly stepMs: number
  readonly remainderMs: number
}

/** Selects samples of a metric. */
export interface SampleSearch {
  readonly filter: PointsFilter
  readonly matchers: readonly LabelMatcher[]
  readonly grid: SegmentGrid
  /** Whether only the last sample of each segment is needed. */
  readonly onlyLast: boolean
  readonly limit: number
}

/**
 * Samples of a series in a segment, whose number is twice that of its step, plus 1 for the end of the step. With `onlyLast`
 * nothing follows the last sample.
 */
export type SampleSegment = readonly [
  segment: number,
  lastMs: number,
  last: number,
  count: number,
  firstMs: number,
  first: number,
  /** Sum of the values before each decrease. */
  resets: number,
  total: number,
  min: number,
  max: number,
]

/** The labels of a series of points, which become its attributes. */
type PackedLabels = readonly [
  attributes: PackedAttributes,
  serviceName: string,
  surfaceId: string,
  instanceId: string,
  isDelta: boolean | number,
]

/** A series with its samples. */
export interface SampleSeriesRow {
  /** Hex. */
  readonly seriesId: string
  /** Upper bound of a bucket. */
  readonly le: string
  readonly labels: Readonly<Record<string, string>>
  /** Whether samples count since the one before, and not since a start. */
  readonly isDelta: boolean
  readonly segments: readonly SampleSegment[]
}

const DISTRIBUTIONS = "type IN ('histogram', 'exponential_histogram', 'summary')"

/** The number that is read of a point, and which points have it. */
const PARTS: Readonly<Record<SamplePart, { sample: string; where: string }>> = {
  value: { sample: NUMBER, where: `type IN ('gauge', 'sum') AND ${HAS_NUMBER}` },
  count: { sample: 'toFloat64(count)', where: DISTRIBUTIONS },
  sum: {
    sample: 'assumeNotNull(sum)',
    where: `${DISTRIBUTIONS} AND isNotNull(sum) AND isFinite(assumeNotNull(sum))`,
  },
  bucket: {
    sample: 'toFloat64(cumulativeCount)',
    where: "type = 'histogram' AND length(bucket_counts) = length(explicit_bounds) + 1",
  },
}

/** Makes a row of each bucket, with the number of observations up to its bound. */
const ROW_OF_BUCKET = `
  ARRAY JOIN arrayCumSum(${BUCKETS.counts}) AS cumulativeCount,
             arraySlice(arrayPushBack(arrayResize(${BUCKETS.boundTexts()},
                                                  greatest(toInt64(length(${BUCKETS.counts})) - 1, 0)), '+Inf'),
                        1, length(${BUCKETS.counts})) AS bound`

const LAST = 'toFloat64(max(atMs)) AS lastMs, argMax(sample, atMs) AS last'

/** The rest of a segment, if more than the last sample is needed. */
const SUMMARY = ', sampleCount, firstMs, first, resets, total, least, most'

/** A point that was received twice is one sample. */
const WHOLE = `
  arraySort(groupUniqArray((atMs, sample))) AS sorted, arrayMap(at -> at.2, sorted) AS samples,
  toUInt32(length(sorted)) AS sampleCount, toFloat64(sorted[1].1) AS firstMs, samples[1] AS first,
  toFloat64(sorted[-1].1) AS lastMs, samples[-1] AS last,
  arraySum(arrayMap((after, before) -> if(after < before, before, toFloat64(0)), arrayPopFront(samples), arrayPopBack(samples)))
    AS resets,
  arraySum(samples) AS total, arrayMin(samples) AS least, arrayMax(samples) AS most`

/**
 * Returns the query of series with their samples by segments of time. `points` has `series`, `le`, `labelsOfPoint`, `atMs` and
 * `sample`. Binds the grid, and `limit`.
 */
export function seriesBySegments(
  points: string,
  { onlyLast }: Pick<SampleSearch, 'onlyLast'>,
  seriesId: string,
): string {
  return `
    SELECT ${seriesId} AS seriesId, le, any(labelsOfSegment) AS packed,
           arraySort(groupArray((segment, lastMs, last${onlyLast ? '' : SUMMARY}))) AS segments
    FROM (
      SELECT series, le, any(labelsOfPoint) AS labelsOfSegment, ${onlyLast ? LAST : WHOLE},
             toUInt32(2 * step + (atMs > {baseMs: Int64} + step * {stepMs: Int64} - {remainderMs: Int64})) AS segment
      FROM (
        SELECT *, intDiv(atMs - {baseMs: Int64} + {stepMs: Int64} - 1, {stepMs: Int64}) AS step FROM (${points}))
      GROUP BY series, le, segment)
    GROUP BY series, le ORDER BY series, le LIMIT {limit: UInt32}`
}

/** Returns the series of a stored metric with their samples by segments of time. */
export async function selectSamples(
  client: ClickHouseClient,
  { name, part }: { readonly name: string; readonly part: SamplePart },
  search: SampleSearch,
  signal: AbortSignal,
): Promise<SampleSeriesRow[]> {
  const points = pointsCondition(search.filter)
  const isBucket = part === 'bucket'
  const labels = labelsCondition(search.matchers, isBucket ? { le: 'bound' } : {})
  const { sample, where } = PARTS[part]
  const ofPoints = `
    SELECT series_id AS series, ${isBucket ? 'bound' : "''"} AS le,
           ((toString(attribute_keys), attribute_values), toString(service_name), surface_id, ${INSTANCE},
            aggregation_temporality = 'delta') AS labelsOfPoint,
           toInt64(intDiv(time_unix_nano, 1000000)) AS atMs, ${sample} AS sample
    FROM metric_points ${isBucket ? ROW_OF_BUCKET : ''}
    WHERE ${points.sql} AND metric_name = {name: String} AND ${IS_RECORDED} AND ${where} AND ${labels.sql}`
  const rows = await selectRows<Omit<SampleSeriesRow, 'labels' | 'isDelta'> & { packed: PackedLabels }>(client, {
    query: seriesBySegments(ofPoints, search, 'lower(hex(series))'),
    params: { ...points.params, ...labels.params, name, limit: search.limit, ...search.grid },
    signal,
    settings: POINTS_SETTINGS,
  })
  return rows.map(({ packed: [attributes, serviceName, surfaceId, instanceId, isDelta], ...row }) => ({
    ...row,
    labels: {
      ...labelsOf(attributes),
      ...{ 'service.name': serviceName, 'surface.id': surfaceId, [INSTANCE_LABEL]: instanceId },
    },
    isDelta: Boolean(isDelta),
  }))
}
