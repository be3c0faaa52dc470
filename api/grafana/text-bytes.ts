import { MIB } from '../../schemas/units.ts'
import { freeBuffer } from '../../shared/memory/free-buffer.ts'

/** UTF-8 bytes that a UTF-16 unit has at most. */
const BYTES_PER_UNIT = 3

/** Collects texts as UTF-8, so that a large response is in memory once: neither as a text nor as parts beside the whole. */
export class TextBytes {
  readonly #full: Buffer[] = []
  #chunk = Buffer.allocUnsafeSlow(MIB)
  #end = 0

  add(text: string): void {
    const most = text.length * BYTES_PER_UNIT
    if (this.#chunk.length - this.#end < most) {
      this.#full.push(this.#chunk.subarray(0, this.#end))
      this.#chunk = Buffer.allocUnsafeSlow(Math.max(MIB, most))
      this.#end = 0
    }
    this.#end += this.#chunk.write(text, this.#end)
  }

  /** Returns all bytes. Nothing can be added afterwards. */
  take(): Uint8Array {
    const parts = [...this.#full, this.#chunk.subarray(0, this.#end)]
    const bytes = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const part of parts) {
      at += part.copy(bytes, at)
      freeBuffer(part)
    }
    return bytes
  }
}
