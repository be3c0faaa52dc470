import { PermanentError } from '../../shared/runtime/errors.ts'

/** Counts the bytes that the open chunks of one stream buffer, and ends the stream when they exceed the limit. */
export class HeldLines {
  readonly #limitBytes: number
  #bytes = 0

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** The buffered bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Counts bytes as buffered. Throws a PermanentError if they exceed the limit. */
  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#limitBytes) {
      throw new PermanentError(`ordering these events would buffer more than ${this.#limitBytes} bytes`)
    }
  }

  /** Counts bytes as no longer buffered. */
  remove(bytes: number): void {
    this.#bytes -= bytes
  }
}
