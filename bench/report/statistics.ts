import type { Sample } from '../support/scenario.ts'

/** Median and range of samples. */
export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Returns the median and the range. With so few samples, the range is more useful than quartiles. */
export function summarize(samples: readonly number[]): Summary {
  if (samples.length === 0) throw new RangeError('there are no samples')
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  const median = sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] as number)) / 2
  return { median, min: sorted[0] as number, max: sorted.at(-1) as number }
}

/** Returns the samples of the rounds that succeeded. */
export function measuredSamples(samples: readonly Sample[]): number[] {
  return samples.filter(sample => sample !== null)
}

/** Divides each sample by that of the same round in another row. Rounds that failed for one of them have no ratio. */
export function ratiosByRound(samples: readonly Sample[], others: readonly Sample[]): number[] {
  if (samples.length !== others.length) throw new RangeError('the rows of a ratio must have the same rounds')
  return samples.flatMap((sample, round) => {
    const other = others[round] as Sample
    return sample === null || other === null ? [] : [sample / other]
  })
}

/** Returns the value at a quantile of unsorted values. */
export function percentile(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? 0
}
