import { setImmediate as otherEvents } from 'node:timers/promises'
import { rotated } from './rounds.ts'
import type { Row, ScenarioContext } from './scenario.ts'

/** One of several implementations of the same work in this process. */
export interface Contender extends Pick<Row, 'ratios' | 'details'> {
  readonly name: string
  /** Works for some milliseconds and returns the amount of work done. */
  take(): number
}

/** Describes for a report how `takeTurns` measures. */
export function methodOfTurns(quick: boolean): string {
  const { rounds, turnMs } = quick ? QUICK : FULL
  return `1 warm-up turn each, ${rounds} rounds in which each takes a turn of ${turnMs / 1_000} s of CPU time, in rotating order`
}

const FULL = { rounds: 5, turnMs: 300 }
const QUICK = { rounds: 3, turnMs: 150 }

/**
 * Measures a row per contender, in units a second on one core. They take turns, so that a slow moment affects all of
 * them, and each round begins with the next one, so that the garbage of one is not always collected in the turn of another.
 */
export async function takeTurns(
  contenders: readonly Contender[],
  unit: string,
  { quick, progress }: Pick<ScenarioContext, 'quick' | 'progress'>,
): Promise<Row[]> {
  const { rounds, turnMs } = quick ? QUICK : FULL
  const samples = new Map(contenders.map(contender => [contender, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    progress(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`)
    for (const contender of rotated(contenders, round)) {
      const rate = measure(contender, turnMs)
      if (round > 0) samples.get(contender)?.push(rate)
      // Lets an interruption be handled.
      await otherEvents()
    }
  }
  return [...samples].map(([{ take: _take, ...contender }, samples]) => ({ ...contender, unit, samples }))
}

/**
 * CPU time of this thread. Node before 22.19 reports only the sum of all threads, with compiler and garbage collector.
 */
const cpuUsage = process.threadCpuUsage ?? process.cpuUsage

/** Measures by the CPU time of this thread, which other processes do not affect. */
function measure(contender: Contender, durationMs: number): number {
  globalThis.gc?.()
  const startedAt = cpuUsage()
  let done = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    done += contender.take()
    const { user, system } = cpuUsage(startedAt)
    elapsedMs = (user + system) / 1_000
  }
  return (done / elapsedMs) * 1_000
}
