import { setTimeout as delay } from 'node:timers/promises'
import { seededRandom } from '../payloads/scramble-message.ts'
import type { Fault } from './faults.ts'

/** Pause between two faults of a lane, in which the service recovers and stores. */
const PAUSE_MS = 2_000

/**
 * Runs faults one after the other for this time, and returns the number of each kind. The deck of kinds is shuffled each time
 * that it was dealt, so that every kind occurs. Kinds, victims and durations follow from the seed; how long a restart
 * takes does not.
 */
export async function runFaults<I>(
  installation: I,
  deck: readonly Fault<I>[],
  { seed, forMs, print }: { seed: number; forMs: number; print: (text: string) => void },
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const startedAt = performance.now()
  const random = seededRandom(seed)
  while (performance.now() - startedAt < forMs) {
    for (const fault of shuffled(deck, random)) {
      // Each fault has its own random values, so that a change of one kind leaves the others as they are.
      const ownRandom = seededRandom(Math.floor(random() * 2 ** 32))
      if (performance.now() - startedAt >= forMs) break
      await fault.run(installation, ownRandom, text => {
        counts[fault.kind] = (counts[fault.kind] ?? 0) + 1
        print(`${((performance.now() - startedAt) / 1_000).toFixed(1)} s: ${text}`)
      })
      await delay(PAUSE_MS)
    }
  }
  return counts
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map(item => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}
