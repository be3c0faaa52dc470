import type { Row, ScenarioContext } from './scenario.ts'

/** One of several ways to do the same work in this process. */
export interface Contender extends Pick<Row, 'ratios' | 'goal'> {
  readonly name: string
  /** Works for some milliseconds and returns how much was done. */
  take(): number
}

/** A row per contender, in units a second on one core. They take turns, so what slows a round slows all of it. */
export function takeTurns(contenders: readonly Contender[], unit: string, { quick, progress }: ScenarioContext): Row[] {
  const [rounds, roundMs] = quick ? [3, 300] : [9, 1_500]
  const samples = contenders.map((): number[] => [])
  for (const contender of contenders) measure(contender, roundMs)
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`)
    for (const [i, contender] of contenders.entries()) samples[i]?.push(measure(contender, roundMs))
  }
  return contenders.map(({ name, ratios, goal }, i) => ({
    name,
    unit,
    samples: samples[i] ?? [],
    ...(ratios && { ratios }),
    ...(goal && { goal }),
  }))
}

/** By CPU time of this thread: other processes of the machine take none of it. */
function measure(contender: Contender, durationMs: number): number {
  globalThis.gc?.()
  const startedAt = process.threadCpuUsage()
  let done = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    done += contender.take()
    const { user, system } = process.threadCpuUsage(startedAt)
    elapsedMs = (user + system) / 1_000
  }
  return (done / elapsedMs) * 1_000
}
