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

/** Divides each sample by that of the same round in another row. */
export function ratiosByRound(samples: readonly number[], others: readonly number[]): number[] {
  if (samples.length !== others.length) throw new RangeError('the rows of a ratio must have the same rounds')
  return samples.map((sample, round) => sample / (others[round] as number))
}
