import type { RecordedWindow } from './recording.ts'

/** Time without any activity from which it is skipped. */
const IDLE_MS = 10_000
/** Time before the next activity at which playing continues. */
const LEAD_MS = 1_000
const TIMES_MAX = 50_000

/** Times at which something happened: the user did something, or an error occurred. Ordered. */
export class Activity {
  #times: number[] = []
  /** Times before this one are known event by event, others chunk by chunk. */
  #known: { from: number; to: number } = { from: 0, to: 0 }

  /** Forgets what is known of another window. */
  begin(at: number): void {
    this.#times = []
    this.#known = { from: at, to: at }
  }

  add(times: readonly number[]): void {
    const last = this.#times.at(-1) ?? Number.NEGATIVE_INFINITY
    for (const time of times) if (time > last && this.#times.length < TIMES_MAX) this.#times.push(time)
  }

  /** States that every event before this time was seen. */
  knowUntil(time: number): void {
    this.#known.to = Math.max(this.#known.to, time)
  }

  /**
   * Returns the time at which playing continues if nothing happens from `at` on for long, else undefined. `others` are times of
   * what else is worth seeing, ordered.
   */
  skipFrom(at: number, window: RecordedWindow, others: readonly number[], endMs: number): number | undefined {
    const next = Math.min(this.#nextAfter(at, window), others.find(time => time > at) ?? endMs, endMs)
    return next - at > IDLE_MS ? Math.max(next - LEAD_MS, at) : undefined
  }

  #nextAfter(at: number, { chunks }: RecordedWindow): number {
    const { from, to } = this.#known
    const isKnown = at >= from && at < to
    const time = isKnown ? this.#times.find(one => one > at) : undefined
    if (time !== undefined) return time
    const after = isKnown ? to : at
    const chunk = chunks.find(({ isActive, lastMs }) => isActive && lastMs > after)
    return chunk === undefined ? Number.POSITIVE_INFINITY : Math.max(chunk.firstMs, after)
  }
}
