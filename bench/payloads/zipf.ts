/** A source of random numbers below 1 that is the same in every run. */
export type Random = () => number

/** Creates a source of random numbers from a seed (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Creates a function that draws a rank below `count`, rank k with a probability in proportion to (k + 1)^-exponent: a few
 * values are everywhere and most are rare, as routes, users and errors of a real service are (Zipf's law).
 */
export function createZipf(count: number, exponent = 1.1): (random: Random) => number {
  const cumulative = new Float64Array(count)
  let sum = 0
  for (let rank = 0; rank < count; rank++) {
    sum += (rank + 1) ** -exponent
    cumulative[rank] = sum
  }
  return random => {
    const drawn = random() * sum
    let low = 0
    let high = count - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((cumulative[middle] as number) < drawn) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Draws a whole number below `bound`. */
export const below = (random: Random, bound: number) => Math.floor(random() * bound)

/** Draws a duration in nanoseconds, log-normal: most are near the median, some are a hundred times as long. */
export function drawDuration(random: Random, medianMs: number): bigint {
  // Box and Muller.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return BigInt(Math.round(medianMs * 1e6 * Math.exp(1.2 * normal)))
}

/** Draws this many bytes. */
export function drawBytes(random: Random, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  for (let i = 0; i < length; i++) bytes[i] = below(random, 256)
  return bytes
}
