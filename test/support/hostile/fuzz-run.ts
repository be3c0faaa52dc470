import { type Random, seededRandom } from '../payloads/scramble-message.ts'

const SAMPLE_EVERY_MS = 250
/** Samples of a run that shows a trend. In the first minute, buffers and heap still grow to the size that they keep. */
export const TREND_SAMPLES = 300
/** Largest quotient of a process whose memory is flat. */
export const MOST_GROWTH = 1.1

/** Share of the run that each of the two fuzz tests has. */
export interface FuzzShare {
  readonly ofTime: number
  readonly ofCount: number
}

/**
 * The bounds of a fuzz run. `FUZZ_SEED` repeats a run, `FUZZ_MINUTES` (5) or `FUZZ_COUNT` inputs end it, each for both
 * tests together: `FUZZ_MINUTES=60 npm run test:hostile -- test/hostile/fuzz`.
 */
export class FuzzRun {
  readonly seed: number
  readonly random: Random
  readonly ms: number
  readonly samples: number[] = []
  /** Number of inputs by kind. */
  readonly counts: Record<string, number> = {}
  readonly #count: number
  readonly #endAt: number
  readonly #sample: () => number
  readonly #warmUp: number
  #sampledAt = 0
  #done = 0

  /** Memory is sampled with `sample`, once `warmUp` inputs have been sent. */
  constructor(share: FuzzShare, sample: () => number, warmUp: number) {
    this.#warmUp = warmUp
    this.seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 32)
    this.random = seededRandom(this.seed)
    const count = process.env.FUZZ_COUNT
    this.#count = count === undefined ? Number.POSITIVE_INFINITY : Number(count) * share.ofCount
    this.ms =
      count === undefined ? Number(process.env.FUZZ_MINUTES ?? 5) * 60_000 * share.ofTime : Number.POSITIVE_INFINITY
    this.#endAt = Date.now() + this.ms
    this.#sample = sample
  }

  get done(): number {
    return this.#done
  }

  /** Counts an input, and returns true while there is time for another. */
  next(kind: string): boolean {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1
    this.#done++
    const now = Date.now()
    if (this.#done > this.#warmUp && now - this.#sampledAt >= SAMPLE_EVERY_MS) {
      this.#sampledAt = now
      this.samples.push(this.#sample())
    }
    return now < this.#endAt && this.#done < this.#count
  }
}

/** Returns how much larger the last fifth of the samples is than the second one, as the quotient of their means. */
export function growth(samples: readonly number[]): number {
  const fifth = Math.floor(samples.length / 5)
  if (fifth === 0) return 1
  const mean = (from: number) => samples.slice(from, from + fifth).reduce((sum, bytes) => sum + bytes, 0) / fifth
  return mean(samples.length - fifth) / mean(fifth)
}

/** Returns one of the items. */
export function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T
}
