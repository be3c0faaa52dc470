/** How long after an express commit the bulk commits stay small. */
const RECENT_MS = 100

/** The longest time that a bulk commit waits. Express commits of many queues could otherwise stop the bulk lanes. */
const MAX_WAIT_MS = 20

/**
 * The express commits of one process, which bulk commits let pass: Redis runs one commit at a time and syncs it to disk, so
 * an express commit waits for the bulk commit that was sent before it.
 */
export class ExpressTraffic {
  readonly #now: () => number
  #inFlight = 0
  #lastAt = Number.NEGATIVE_INFINITY
  readonly #waiting = new Set<() => void>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Whether an express commit is in flight. */
  get isBusy(): boolean {
    return this.#inFlight > 0
  }

  /** Whether express commits were in flight lately. */
  get isRecent(): boolean {
    return this.#inFlight > 0 || this.#now() - this.#lastAt < RECENT_MS
  }

  /** Notes that an express commit begins. */
  begin(): void {
    this.#inFlight++
  }

  /** Notes that an express commit has ended. */
  end(): void {
    this.#lastAt = this.#now()
    if (--this.#inFlight === 0) for (const resume of [...this.#waiting]) resume()
  }

  /** Resolves when no express commit is in flight, or after 20 ms. */
  async gap(): Promise<void> {
    if (!this.isBusy) return
    await new Promise<void>(resolve => {
      const resume = () => {
        clearTimeout(timer)
        this.#waiting.delete(resume)
        resolve()
      }
      const timer = setTimeout(resume, MAX_WAIT_MS)
      this.#waiting.add(resume)
    })
  }
}
