/** The unit of `start_bucket`. */
const BUCKET_NANOS = 10_000_000_000n

/** The time by which a span is listed, in Unix ns: its start, or its arrival if that was earlier. */
export const AT = 'least(start_time_unix_nano, toUInt64(toUnixTimestamp64Nano(received_at)))'

/** Conditions that a span has a time from `sinceNano` to before `toNano`. It arrived then or later. */
export const IN_TIME = `start_bucket >= {firstBucket: UInt32} AND start_bucket <= {lastBucket: UInt32}
  AND received_at >= fromUnixTimestamp64Nano({sinceNano: Int64}, 'UTC')
  AND ${AT} >= {sinceNano: UInt64} AND ${AT} < {toNano: UInt64}`

/** Returns the parameters of `IN_TIME`. */
export function boundTimes(sinceNano: bigint, toNano: bigint) {
  return {
    sinceNano: String(sinceNano),
    toNano: String(toNano),
    firstBucket: Number(sinceNano / BUCKET_NANOS),
    lastBucket: Number(toNano / BUCKET_NANOS),
  }
}
