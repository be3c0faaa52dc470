import type { Buckets } from '../../clickhouse/queries/findings/select-finding-counts.ts'
import { OCCURRENCE_BUCKETS_MAX } from '../../schemas/http/findings/schemas.ts'

/** Each divides a day; occurrences are counted by five minutes. */
const BUCKET_SECONDS = [300, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400] as const
const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400

export interface AskedTime {
  readonly fromMs: number | undefined
  readonly toMs: number | undefined
  /** Where a finding's retained occurrences begin. */
  readonly firstMs: number
  readonly nowMs: number
}

/**
 * The smallest buckets that cover what was asked for with no more than `OCCURRENCE_BUCKETS_MAX`; without anything asked,
 * all that is retained, in hours where they suffice. What is longer than so many days loses its beginning.
 */
export function chooseBuckets({ fromMs, toMs, firstMs, nowMs }: AskedTime): Buckets {
  const end = inRange((toMs ?? Math.max(nowMs, fromMs ?? nowMs)) / 1_000)
  const start = Math.min(inRange((fromMs ?? firstMs) / 1_000), end)
  const least = fromMs === undefined && toMs === undefined ? HOUR_SECONDS : 0
  for (const bucketSeconds of BUCKET_SECONDS) {
    if (bucketSeconds < least) continue
    const from = Math.floor(start / bucketSeconds) * bucketSeconds
    const to = Math.ceil(end / bucketSeconds) * bucketSeconds
    if ((to - from) / bucketSeconds <= OCCURRENCE_BUCKETS_MAX) return { from, to, bucketSeconds }
  }
  const to = Math.ceil(end / DAY_SECONDS) * DAY_SECONDS
  return { from: to - OCCURRENCE_BUCKETS_MAX * DAY_SECONDS, to, bucketSeconds: DAY_SECONDS }
}

/** Unix seconds that ClickHouse's DateTime has, a few days left to round in. */
function inRange(seconds: number): number {
  return Math.min(Math.max(seconds, 0), 2 ** 32 - 10 * DAY_SECONDS)
}
