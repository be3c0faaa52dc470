import { PermanentError } from '../../shared/runtime/errors.ts'

/** Counts what the open chunks of one reading hold of events, and ends it before that is more than it may be. */
export class HeldLines {
  readonly #limitBytes: number
  #bytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#limitBytes) {
      throw new PermanentError(`events of over ${this.#limitBytes} bytes would have to be held to be put in order`)
    }
  }

  remove(bytes: number): void {
    this.#bytes -= bytes
  }
}
