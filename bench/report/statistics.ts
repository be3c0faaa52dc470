export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Few samples: the whole range says more than quartiles of five would. */
export function summarize(samples: readonly number[]): Summary {
  if (samples.length === 0) throw new RangeError('there are no samples')
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  const median = sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] as number)) / 2
  return { median, min: sorted[0] as number, max: sorted.at(-1) as number }
}

/** Each sample over that of the same round in another row. */
export function ratiosByRound(samples: readonly number[], others: readonly number[]): number[] {
  if (samples.length !== others.length)
    throw new RangeError('rows of a ratio must have been measured in the same rounds')
  return samples.map((sample, round) => sample / (others[round] as number))
}
