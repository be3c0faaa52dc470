import { MINUTE_MS } from '../../schemas/units.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'

/** When failures of one item that repeat are a fault of the item. Both bounds must be reached. */
export interface CondemnAfter {
  readonly attempts: number
  readonly ms: number
}

/** Bounds for an item that nothing else is known about. They outlast a restart of a store. */
export const CONDEMN_AFTER: CondemnAfter = { attempts: 20, ms: 10 * MINUTE_MS }

/** Items whose failures are remembered. */
const MAX_ITEMS = 1_000

/** Failures of one item in a row, all with the same code of the store. */
interface Run {
  readonly code: string
  readonly firstAtMs: number
  attempts: number
}

/**
 * Distinguishes an item that a store refuses again and again from a store that is unavailable. Codes that are not known as
 * faults of the content may still be caused by it. An item is condemned only if the store accepted other
 * items of the same target after the first failure: nothing is condemned while the store as a whole refuses.
 */
export class RepeatedFailures {
  readonly #now: () => number
  readonly #runs = new Map<string, Run>()
  /** Time of the last success by target. Targets are tables or stores, so their number is small. */
  readonly #succeededAt = new Map<string, number>()

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Notes that an item was accepted. */
  succeeded(target: string, item: string): void {
    this.#succeededAt.set(target, this.#now())
    this.#runs.delete(item)
  }

  /**
   * Notes that an item failed, and returns whether it is condemned. `code` is undefined if the store did not answer: then
   * the item may have been accepted, and its failures are counted from the next answer on.
   */
  failed(target: string, item: string, code: string | undefined, condemnAfter = CONDEMN_AFTER): boolean {
    if (code === undefined) {
      this.#runs.delete(item)
      return false
    }
    const now = this.#now()
    const known = this.#runs.get(item)
    const run = known?.code === code ? known : { code, firstAtMs: now, attempts: 0 }
    run.attempts++
    setBounded(this.#runs, MAX_ITEMS, item, run)
    const isLong = run.attempts >= condemnAfter.attempts && now - run.firstAtMs >= condemnAfter.ms
    return isLong && (this.#succeededAt.get(target) ?? 0) > run.firstAtMs
  }

  /** Returns how long the item has failed with the same code. */
  failingMs(item: string): number {
    const run = this.#runs.get(item)
    return run === undefined ? 0 : this.#now() - run.firstAtMs
  }

  /** The most attempts of an item that still fails. */
  get mostAttempts(): number {
    let most = 0
    for (const { attempts } of this.#runs.values()) most = Math.max(most, attempts)
    return most
  }

  /** Forgets an item that is settled in another way. */
  forget(item: string): void {
    this.#runs.delete(item)
  }
}
