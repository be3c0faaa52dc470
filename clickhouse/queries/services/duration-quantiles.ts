/**
 * Returns an expression of the quantile of durations in nanoseconds, from their numbers by bucket
 * (workers/span-stats/duration-bucket.ts): the middle of the first bucket that more than the share of the durations are up to.
 * `buckets` is a sorted map.
 */
export function durationQuantile(buckets: string, level: number): string {
  const counts = `mapValues(${buckets})`
  const bucket = `mapKeys(${buckets})[arrayFirstIndex(reached -> reached > ${level} * arraySum(${counts}), arrayCumSum(${counts}))]`
  return `if(${bucket} = 0, 0, exp2((${bucket} - 1.5) / 32))`
}
