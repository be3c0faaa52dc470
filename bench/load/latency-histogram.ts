/** Sub-buckets per power of two: a value is off by 1/128 at most. */
const SUB_BUCKETS = 128
/** 1 µs to 2^33 µs, more than two hours. */
const BUCKETS = (33 - 6) * SUB_BUCKETS

export interface Percentiles {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
}

/**
 * Latencies in buckets that widen with the value, as HdrHistogram has them: recording is an addition, and the far
 * percentiles are as exact as the near ones.
 *
 *   bucket:  0 … 127 | 128 … 255      | 256 … 383      | …
 *   holds:   1 µs    | 1 µs (128…255) | 2 µs (256…511) | 4 µs, and so on
 */
export class Histogram {
  readonly #counts = new Float64Array(BUCKETS)
  #total = 0
  #maxUs = 0

  get count(): number {
    return this.#total
  }

  record(milliseconds: number): void {
    const us = Math.max(0, Math.round(milliseconds * 1_000))
    const bucket = bucketOf(us)
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#total++
    if (us > this.#maxUs) this.#maxUs = us
  }

  percentiles(): Percentiles {
    return {
      p50Ms: this.#at(0.5),
      p99Ms: this.#at(0.99),
      p999Ms: this.#at(0.999),
      maxMs: this.#maxUs / 1_000,
    }
  }

  reset(): void {
    this.#counts.fill(0)
    this.#total = 0
    this.#maxUs = 0
  }

  /** The upper end of the bucket that holds the quantile: never better than what was measured. */
  #at(quantile: number): number {
    let left = Math.ceil(this.#total * quantile)
    if (left === 0) return 0
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.#counts[bucket] as number
      if (left <= 0) return Math.min(upperEndOf(bucket), this.#maxUs) / 1_000
    }
    return this.#maxUs / 1_000
  }
}

function bucketOf(us: number): number {
  if (us < SUB_BUCKETS) return us
  const exponent = Math.floor(Math.log2(us)) - 7
  const bucket = (exponent + 1) * SUB_BUCKETS + Math.floor(us / 2 ** exponent) - SUB_BUCKETS
  return Math.min(bucket, BUCKETS - 1)
}

function upperEndOf(bucket: number): number {
  if (bucket < SUB_BUCKETS) return bucket
  const exponent = Math.floor(bucket / SUB_BUCKETS) - 1
  const start = ((bucket % SUB_BUCKETS) + SUB_BUCKETS) * 2 ** exponent
  return start + 2 ** exponent - 1
}
