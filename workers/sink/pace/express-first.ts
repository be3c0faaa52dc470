/** Ordinary jobs are decoded within this time. */
const SHORT_MS = 20
/** Longest pause. Decoding one request takes two seconds at most (request-cost.ts). */
const MAX_PAUSE_MS = 1_000

/**
 * Lets the express lanes of a process go ahead of its bulk lanes. Decoding blocks the process. A batch of an express lane
 * needs dozens of steps, and would wait for another bulk job before each of them, which a client can make as costly as the
 * limits of a request permit.
 */
export class ExpressFirst {
  #jobs = 0

  /** Runs a job of an express lane. */
  async run<T>(job: () => Promise<T>): Promise<T> {
    this.#jobs++
    try {
      return await job()
    } finally {
      this.#jobs--
    }
  }

  /** Pauses a bulk lane for as long as it has decoded, unless that was short or no express job is in progress. */
  async pauseBulk(decodedMs: number): Promise<void> {
    if (decodedMs <= SHORT_MS || this.#jobs === 0) return
    await new Promise(resolve => setTimeout(resolve, Math.min(decodedMs, MAX_PAUSE_MS)))
  }
}
