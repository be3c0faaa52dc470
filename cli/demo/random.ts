import { hash } from 'node:crypto'

/** Numbers and ids that a seed decides. */
export interface Random {
  /** A number from 0 to 1 (exclusive). */
  next(): number
  /** A whole number between both, inclusive. */
  int(from: number, to: number): number
  pick<T>(values: readonly T[]): T
  chance(share: number): boolean
  /** A duration in ms whose logarithm is normally distributed around that of the median. */
  ms(median: number, spread?: number): number
  /** Hex digits that no other call returns. */
  hex(digits: number): string
  uuid(): string
}

/**
 * Creates the generator. The seed alone decides on the numbers; `run` makes the ids differ from those of another run. The numbers
 * are those of mulberry32.
 */
export function createRandom(seed: string, run: string): Random {
  let state = Number.parseInt(hash('sha256', seed).slice(0, 8), 16) | 0
  let ids = 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  const hex = (digits: number) => hash('sha256', `${seed} ${run} ${ids++}`).slice(0, digits)
  return {
    next,
    int,
    pick: <T>(values: readonly T[]) => values[int(0, values.length - 1)] as T,
    chance: share => next() < share,
    ms(median, spread = 0.35) {
      const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
      return Math.max(0.05, median * Math.exp(spread * normal))
    },
    hex,
    uuid() {
      const digits = hex(32)
      const [a, b, c, d, e] = [
        [0, 8],
        [8, 12],
        [13, 16],
        [17, 20],
        [20, 32],
      ].map(([from, to]) => digits.slice(from, to))
      return `${a}-${b}-4${c}-a${d}-${e}`
    },
  }
}
