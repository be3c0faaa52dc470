/** Average speed at which a client must read its response. Both numbers are stated in docs/api/requests.md#slow-readers. */
export const READ_BYTES_PER_SECOND = 64 * 1024
/** Time over which the speed is averaged, in ms. */
export const READ_ALLOWANCE_MS = 60_000

/**
 * Ends the response of a client that reads more slowly than 64 KiB/s on average, because what is made for it stays in
 * memory meanwhile. The client has an allowance of time. Waiting for the client uses it up, and each byte that the client
 * takes adds to it again, up to the whole allowance.
 */
export class ReadPace {
  readonly #allowanceMs: number
  readonly #onTooSlow: () => void
  readonly #now: () => number
  #leftMs: number
  #waitsSince: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(allowanceMs: number, now: () => number, onTooSlow: () => void) {
    this.#allowanceMs = allowanceMs
    this.#leftMs = allowanceMs
    this.#now = now
    this.#onTooSlow = onTooSlow
  }

  /** Begins to wait for the client. */
  wait(): void {
    this.#waitsSince ??= this.#now()
    this.#timer ??= setTimeout(this.#onTooSlow, this.#leftMs)
  }

  /** Ends the wait, because the client has taken these bytes. */
  moved(bytes: number): void {
    if (this.#waitsSince !== undefined) this.#leftMs -= this.#now() - this.#waitsSince
    this.#leftMs = Math.min(this.#leftMs + (bytes * 1_000) / READ_BYTES_PER_SECOND, this.#allowanceMs)
    this.end()
  }

  /** Ends the wait, because the response is complete or given up. */
  end(): void {
    clearTimeout(this.#timer)
    this.#timer = this.#waitsSince = undefined
  }
}
