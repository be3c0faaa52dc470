import type { Aggregation, MetricKind } from '../../../schemas/http/metrics.ts'
import { EXPONENTIAL_BUCKETS, exponentialQuantile } from './exponential-quantile.ts'
import { BUCKETS, type BucketColumns } from './metric-points.ts'
import { HAS_NUMBER, NUMBER, type PointSource } from './samples-by-step.ts'

const NANOS_PER_SECOND = 1_000_000_000n

/**
 * Returns after which time without a point a cumulative series is silent: two steps, and at least five minutes. Its change in
 * such a time belongs to no step, because it would hide the gap.
 */
export function silenceNanoOf(stepSeconds: number): bigint {
  return BigInt(Math.max(2 * stepSeconds, 300)) * NANOS_PER_SECOND
}

/** What a query reads of points. Columns that an aggregation does not need are constants, so that less is sorted. */
interface PointColumns {
  /** The count of a distribution, else the value. It drops when a cumulative series begins again. */
  readonly number: string
  readonly total: string
  readonly buckets: BucketColumns | undefined
  readonly where: string
}

const NO_TOTAL = 'toFloat64(0)'
const NO_BOUNDS = "CAST([], 'Array(Float64)')"

const EXPLICIT_BUCKETS: BucketColumns = {
  compared: { buckets: BUCKETS.counts },
  bounds: BUCKETS.bounds,
  isReset: 'arrayExists((bucket, i) -> bucket < bucketsBefore[i], buckets, arrayEnumerate(buckets))',
  changes: {
    bucketChanges: `arrayMap((bucket, i) -> toFloat64(bucket) - if(isFromZero, 0, toFloat64(bucketsBefore[i])),
                             buckets, arrayEnumerate(buckets))`,
  },
}

/** Points of one series have others before them only if their buckets are the same. Hashes are compared faster than lists. */
const SERIES = 'seriesId, boundsHash'

function columnsOf(type: MetricKind['type'], aggregation: Aggregation): PointColumns {
  const unused = { total: NO_TOTAL, buckets: undefined }
  if (type === 'sum') return { ...unused, number: NUMBER, where: HAS_NUMBER }
  const distribution = { ...unused, number: 'toFloat64(count)', where: 'true' }
  if (aggregation === 'rate') return distribution
  if (aggregation !== 'quantile') {
    return { ...distribution, total: 'assumeNotNull(sum)', where: 'isNotNull(sum) AND isFinite(assumeNotNull(sum))' }
  }
  if (type === 'exponential_histogram') return { ...distribution, buckets: EXPONENTIAL_BUCKETS }
  const where = 'notEmpty(explicit_bounds) AND explicit_bounds[1] != inf AND notEmpty(bucket_counts)'
  return { ...distribution, buckets: EXPLICIT_BUCKETS, where }
}

/**
 * The quantile of a histogram: the bucket that contains it, and within it a linear interpolation. The first bucket begins at 0,
 * or has one value if its bound is not positive. In the last bucket, which has no end, it is the last bound.
 */
const QUANTILE = `
  sumForEach(arrayMap(bucket -> bucket * share, bucketChanges)) AS counts, arrayCumSum(counts) AS reached,
  {quantile: Float64} * reached[-1] AS target,
  arrayFirstIndex(count -> count > 0 AND count >= target, reached) AS found,
  if(found > 1, bounds[found - 1], least(bounds[1], 0)) AS lowerBound,
  multiIf(reached[-1] <= 0, NULL,
          found > length(bounds), bounds[-1],
          lowerBound + (bounds[found] - lowerBound) * (target - if(found > 1, reached[found - 1], 0)) / counts[found])`

function aggregateOf(type: MetricKind['type'], aggregation: Aggregation): string {
  switch (aggregation) {
    case 'rate':
      return 'sum(change * share) / {stepSeconds: UInt32}'
    case 'sum':
      return type === 'sum' ? 'sum(change * share)' : 'sum(totalChange * share)'
    case 'average':
      return 'sum(totalChange * share) / sum(change * share)'
    case 'quantile':
      return QUANTILE
    default:
      throw new TypeError(`a change has no ${aggregation}`)
  }
}

/**
 * Returns the query of the values by labels and step of points that count something since a start (cumulative) or since the point
 * before (delta), docs/api/metrics.md#metric-series. From the inside out:
 *
 * 1. The points, of a quantile only those that {@link endsOfSteps} leaves.
 * 2. Each point with the one before it of the same series and bounds.
 * 3. The change that it states, and since when. A cumulative point that has none before it, whose number is smaller or whose
 *    start is later has begun at 0. A repeated point has a change of no time, and is left out.
 * 4. The part of that time which is in the range, divided by steps. A step has the share of the change that it has of the time.
 *
 * A column that the aggregation does not need is made after the window, through which every column is sorted and copied.
 */
export function changesByStep(
  { kind: { type }, aggregation }: { kind: Pick<MetricKind, 'type'>; aggregation: Aggregation },
  source: PointSource,
): string {
  const columns = columnsOf(type, aggregation)
  const { buckets } = columns
  const bounds = buckets?.bounds
  const hasTotals = columns.total !== NO_TOTAL
  const compared = [
    'at',
    'startedAt',
    'number',
    ...(hasTotals ? ['total'] : []),
    ...Object.keys(buckets?.compared ?? {}),
  ]
  const carried = ['labels', 'isDelta', ...(bounds ? ['bounds'] : []), ...compared].join(', ')
  const previous = compared.map(column => `lagInFrame(${column}) OVER previous AS ${column}Before`).join(', ')
  const points = pointsQuery(columns, source)
  const changed = ['change', 'totalChange', ...Object.keys(buckets?.changes ?? {})].join(', ')
  const shares = `
      SELECT labels, bounds, ${changed},
             toUInt32(stepNumber - {firstStep: UInt64}) AS step,
             (least(endsAt, (stepNumber + 1) * {stepNano: UInt64}) - greatest(beginsAt, stepNumber * {stepNano: UInt64}))
               / (at - since) AS share
      FROM (
        SELECT labels, ${bounds ? 'bounds' : `${NO_BOUNDS} AS bounds`}, at, since, ${changed},
               greatest(since, {firstNano: UInt64}) AS beginsAt, least(at, {endNano: UInt64}) AS endsAt
        FROM (
          SELECT labels, ${bounds ? 'bounds, ' : ''}at,
                 isDelta OR atBefore = 0 OR number < numberBefore OR (startedAtBefore > 0 AND startedAt > startedAtBefore)
                   ${buckets ? `OR ${buckets.isReset}` : ''} AS isFromZero,
                 number - if(isFromZero, 0, numberBefore) AS change,
                 ${hasTotals ? 'total - if(isFromZero, 0, totalBefore)' : NO_TOTAL} AS totalChange,
                 ${named(buckets?.changes)
                   .map(column => `${column},`)
                   .join(' ')}
                 greatest(if(startedAt < at, startedAt, 0), atBefore) AS knownSince,
                 multiIf(knownSince > 0 AND at - knownSince <= {silenceNano: UInt64}, knownSince,
                         NOT isDelta, 0,
                         startedAt > 0 AND startedAt < at, knownSince,
                         toUInt64(at - 1)) AS since
          FROM (
            SELECT ${carried}, ${previous}
            FROM (${buckets ? endsOfSteps(points) : points})
            WINDOW previous AS (
              PARTITION BY ${SERIES} ORDER BY at, number ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)))
        WHERE since > 0 AND beginsAt < endsAt)
      ARRAY JOIN range(intDiv(beginsAt, {stepNano: UInt64}), intDiv(toUInt64(endsAt - 1), {stepNano: UInt64}) + 1) AS stepNumber`
  if (buckets === EXPONENTIAL_BUCKETS) return exponentialQuantile(shares)
  return `SELECT labels, bounds, step, ${aggregateOf(type, aggregation)} AS value FROM (${shares}) GROUP BY labels, bounds, step`
}

/** Returns the query of the points. Their `boundsHash` tells points of one series with other buckets from each other. */
function pointsQuery(columns: PointColumns, { where, labels }: PointSource): string {
  const bounds = columns.buckets?.bounds
  const read = [
    'series_id AS seriesId',
    `${bounds ? 'cityHash64(explicit_bounds)' : '0'} AS boundsHash`,
    `${labels} AS labels`,
    "aggregation_temporality = 'delta' AS isDelta",
    'time_unix_nano AS at',
    'start_time_unix_nano AS startedAt',
    `${columns.number} AS number`,
    ...(columns.total === NO_TOTAL ? [] : [`${columns.total} AS total`]),
    ...named(columns.buckets?.compared),
    ...(bounds ? [`${bounds} AS bounds`] : []),
  ]
  return `SELECT ${read.join(', ')} FROM metric_points WHERE ${where} AND ${columns.where}`
}

/** Returns columns by their names as they are selected. */
function named(columns: Readonly<Record<string, string>> = {}): string[] {
  return Object.entries(columns).map(([name, expression]) => `${expression} AS ${name}`)
}

/**
 * Returns the query of the points without cumulative ones that are between two others of the same step, from which the series
 * has gone on without beginning again. Their changes add up to that between the two others, so that lists of buckets, of which
 * most of the work of a quantile would be, are compared at the ends of steps alone.
 */
function endsOfSteps(points: string): string {
  const beside = ['at', 'startedAt', 'number'].map(
    column =>
      `lagInFrame(${column}) OVER beside AS ${column}Left, leadInFrame(${column}) OVER beside AS ${column}Right`,
  )
  return `
    SELECT * FROM (
      SELECT *, ${beside.join(', ')} FROM (${points})
      WINDOW beside AS (PARTITION BY ${SERIES} ORDER BY at, number ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING))
    WHERE isDelta OR atLeft = 0 OR atRight = 0
      OR intDiv(atLeft, {stepNano: UInt64}) != intDiv(atRight, {stepNano: UInt64})
      OR startedAt != startedAtLeft OR startedAt != startedAtRight OR startedAt >= atLeft
      OR number < numberLeft OR number > numberRight`
}
