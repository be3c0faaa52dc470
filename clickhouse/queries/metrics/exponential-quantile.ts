import type { BucketColumns } from './metric-points.ts'

/**
 * Quantiles of exponential histograms (docs/api/metrics.md#exponential-quantiles).
 *
 * A bucket has a key: 0 for the bucket of zeros, else its index plus 2^33, negated for a bucket of negative values. Indexes have
 * 32 bits, so keys are in the order of the values of their buckets. At a scale, bucket i of positive values ends at
 * 2^((i + 1) / 2^scale). One scale lower, two buckets are one, whose index is half of theirs, rounded down.
 */
const KEY_BASE = '8589934592'

const keysOf = (side: 'positive' | 'negative', sign: '' | '-') => `
  arrayMap(i -> ${sign}(toInt64(i) - 1 + ${side}_offset + ${KEY_BASE}),
           arrayFilter((i, number) -> number > 0, arrayEnumerate(${side}_bucket_counts), ${side}_bucket_counts))`
const countsOf = (side: 'positive' | 'negative') => `arrayFilter(number -> number > 0, ${side}_bucket_counts)`

/** Returns keys at a scale that is smaller by `difference`. */
const lowered = (keys: string, difference: string) => `
  arrayMap(key -> if(key = 0, toInt64(0),
                     toInt64(sign(key) * (floor((abs(key) - ${KEY_BASE}) / exp2(${difference})) + ${KEY_BASE}))), ${keys})`

/**
 * The buckets of a point that are not empty. A change is at the smaller one of two scales, which senders lower when their values
 * need more buckets. Its counts are whole numbers, so that nothing is left of a bucket that has not changed.
 */
export const EXPONENTIAL_BUCKETS: BucketColumns = {
  compared: {
    bucketScale: 'scale',
    keys: `arrayConcat(${keysOf('negative', '-')}, if(zero_count > 0, [toInt64(0)], []), ${keysOf('positive', '')})`,
    counts: `arrayConcat(${countsOf('negative')}, if(zero_count > 0, [zero_count], []), ${countsOf('positive')})`,
  },
  bounds: undefined,
  isReset: 'arrayExists(number -> number < 0, difference.2)',
  changes: {
    difference: `
      arrayReduce('sumMap',
                  [${lowered('keys', 'toFloat64(bucketScale) - least(bucketScale, bucketScaleBefore)')},
                   ${lowered('keysBefore', 'toFloat64(bucketScaleBefore) - least(bucketScale, bucketScaleBefore)')}],
                  [arrayMap(number -> toFloat64(number), counts), arrayMap(number -> -toFloat64(number), countsBefore)])`,
    changedScale: 'if(isFromZero, bucketScale, least(bucketScale, bucketScaleBefore))',
    changedKeys: 'if(isFromZero, keys, difference.1)',
    changedCounts: 'if(isFromZero, arrayMap(number -> toFloat64(number), counts), difference.2)',
  },
}

/**
 * Returns the query of quantiles by labels and step, from rows with their share of a change in a step. Buckets are added scale by
 * scale first, then at the smallest scale of the step. Within its bucket a quantile is interpolated as if the logarithms of the
 * values were spread evenly. In the bucket of zeros it is 0.
 */
export function exponentialQuantile(shares: string): string {
  return `
    SELECT labels, bounds, step, arrayMin(parts.1) AS common,
           arrayReduce('sumMap',
                       arrayMap(part -> ${lowered('part.2', 'toFloat64(part.1) - common')}, parts),
                       arrayMap(part -> part.3, parts)) AS merged,
           merged.1 AS keys, merged.2 AS counts, arrayCumSum(counts) AS reached, {quantile: Float64} * reached[-1] AS target,
           arrayFirstIndex((number, upTo) -> number > 0 AND upTo >= target, counts, reached) AS found,
           keys[found] AS key, (target - (reached[found] - counts[found])) / counts[found] AS inside,
           sign(key) * exp2((abs(key) - ${KEY_BASE} + if(key > 0, inside, 1 - inside)) * exp2(-toFloat64(common))) AS estimate,
           multiIf(found = 0, NULL, key = 0, toFloat64(0), isFinite(estimate), estimate, NULL) AS value
    FROM (
      SELECT labels, bounds, step, groupArray((changedScale, summed.1, summed.2)) AS parts
      FROM (
        SELECT labels, bounds, step, changedScale,
               sumMap(changedKeys, arrayMap(number -> number * share, changedCounts)) AS summed
        FROM (${shares}) GROUP BY labels, bounds, step, changedScale)
      GROUP BY labels, bounds, step)`
}
