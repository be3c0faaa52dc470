import { setImmediate as otherEvents } from 'node:timers/promises'
import type { Row, ScenarioContext } from './scenario.ts'

/** One of several implementations of the same work in this process. */
export interface Contender extends Pick<Row, 'ratios' | 'goal' | 'details'> {
  readonly name: string
  /** Works for some milliseconds and returns the amount of work done. */
  take(): number
}

/** Describes for a report how `takeTurns` measures. */
export function methodOfTurns(quick: boolean): string {
  const { rounds, turnMs } = quick ? QUICK : FULL
  return `1 warm-up turn each, ${rounds} rounds in which each takes a turn of ${turnMs / 1_000} s of CPU time`
}

const FULL = { rounds: 5, turnMs: 300 }
const QUICK = { rounds: 3, turnMs: 150 }

/**
 * Measures a row per contender, in units a second on one core. They take turns, so that a slow moment affects all of
 * them.
 */
export async function takeTurns(
  contenders: readonly Contender[],
  unit: string,
  { quick, progress }: ScenarioContext,
): Promise<Row[]> {
  const { rounds, turnMs } = quick ? QUICK : FULL
  const samples = contenders.map((): number[] => [])
  for (let round = 0; round <= rounds; round++) {
    progress(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`)
    for (const [i, contender] of contenders.entries()) {
      const rate = measure(contender, turnMs)
      if (round > 0) samples[i]?.push(rate)
      // Lets an interruption be handled.
      await otherEvents()
    }
  }
  return contenders.map(({ take: _take, ...contender }, i) => ({ ...contender, unit, samples: samples[i] ?? [] }))
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
