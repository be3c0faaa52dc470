import { MINUTE_MS } from '../../../schemas/units.ts'
import { lasting } from '../length.ts'
import { type Random, seededRandom } from '../payloads/scramble-message.ts'

/** Share of the run that each of the two fuzz tests has. */
interface FuzzShare {
  readonly ofTime: number
  readonly ofCount: number
}

/** One input of a run. Its random numbers depend on the seed and its index alone, whatever runs beside it. */
export interface FuzzInput {
  readonly index: number
  readonly random: Random
}

/**
 * The bounds of a fuzz run. `FUZZ_SEED` repeats a run, `FUZZ_MINUTES` (5 at night) or `FUZZ_COUNT` inputs end it, each for both
 * tests together: `FUZZ_MINUTES=60 npm run test:hostile -- test/hostile/fuzz`.
 */
export class FuzzRun {
  readonly seed: number
  /** Number of inputs by kind and outcome. */
  readonly outcomes: Record<string, Record<string, number>> = {}
  readonly #count: number
  readonly #ms: number
  #startedAt: number | undefined
  #next = 0

  constructor(share: FuzzShare) {
    this.seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 32)
    const count = process.env.FUZZ_COUNT
    this.#count = count === undefined ? Number.POSITIVE_INFINITY : Math.round(Number(count) * share.ofCount)
    this.#ms =
      count === undefined
        ? lasting('FUZZ_MINUTES', { nightly: 5, else: 0.4 }) * MINUTE_MS * share.ofTime
        : Number.POSITIVE_INFINITY
  }

  /** Number of inputs so far. */
  get done(): number {
    return this.#next
  }

  /** Time since the first input: what is prepared before, such as compiling the decoders, takes none of the run. */
  get elapsedMs(): number {
    return this.#startedAt === undefined ? 0 : Date.now() - this.#startedAt
  }

  /** Returns the next input, or undefined when the run is over. */
  next(): FuzzInput | undefined {
    this.#startedAt ??= Date.now()
    if (this.#next >= this.#count || this.elapsedMs >= this.#ms) return undefined
    const index = this.#next++
    return { index, random: seededRandom(Math.imul(this.seed, 0x9e3779b1) + index) }
  }

  /** Counts the outcome of an input. */
  ended(kind: string, outcome: string): void {
    this.outcomes[kind] ??= {}
    const outcomes = this.outcomes[kind]
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
}

/** Returns one of the items. */
export function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T
}

/** Returns a function from [0, 1) to one of the entries, by their weights. */
export function weighted<T extends { readonly weight: number }>(entries: readonly T[]): (at: number) => T {
  const total = entries.reduce((sum, { weight }) => sum + weight, 0)
  return at => {
    let rest = at * total
    for (const entry of entries) {
      rest -= entry.weight
      if (rest < 0) return entry
    }
    return entries[0] as T
  }
}
