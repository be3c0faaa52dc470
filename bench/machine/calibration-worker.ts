import { parentPort, workerData } from 'node:worker_threads'

/** Runs a fixed computation in a thread of its own, for this many milliseconds. */
const computeMs = workerData as number

// Compiled before it counts.
compute(performance.now() + computeMs / 4)
const startedAt = performance.now()
const turns = compute(startedAt + computeMs)
parentPort?.postMessage((turns / (performance.now() - startedAt)) * 1_000)

/** Computes until this time and returns how often. A turn walks through 4 MiB, so that caches and memory count too. */
function compute(until: number): number {
  const words = new Int32Array(1 << 20)
  let turns = 0
  let state = 1
  while (performance.now() < until) {
    for (let i = 0; i < 100_000; i++) {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      const at = state & 0xfffff
      words[at] = (words[at] as number) + state
    }
    turns++
  }
  return turns
}
