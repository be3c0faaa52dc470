import type { BufferPool } from '../../memory/buffer-pool.ts'

/** Count of held bytes with a ceiling, shared by all bodies of a server. */
export class HeldBytes {
  #used = 0
  readonly #limitBytes: number

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get used(): number {
    return this.#used
  }

  /** Counts the bytes. Returns false, without counting any, if they do not fit under the ceiling. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#limitBytes) return false
    this.#used += bytes
    return true
  }

  /** Stops counting the bytes. */
  give(bytes: number): void {
    this.#used -= bytes
  }
}

const NO_BYTES = Buffer.alloc(0)
const FIRST_ALLOCATION_BYTES = 64 * 1024

/**
 * The bytes of one request while they arrive. Memory follows what has arrived, not the announced length, because
 * announcing costs the sender nothing. It is one buffer that doubles: a list of chunks would let a client that sends
 * single bytes use a hundred times the counted memory.
 */
export class RequestBody {
  readonly #held: HeldBytes
  readonly #memory: BufferPool
  readonly #mostBytes: number
  #bytes: Buffer | undefined
  #size = 0
  #heldBytes = 0
  #released = false

  /** `mostBytes` is the announced length, or else the limit. It bounds the growth. */
  constructor(held: HeldBytes, memory: BufferPool, mostBytes: number) {
    this.#held = held
    this.#memory = memory
    this.#mostBytes = mostBytes
  }

  get size(): number {
    return this.#size
  }

  get bytes(): Buffer {
    return this.#bytes ? this.#bytes.subarray(0, this.#size) : NO_BYTES
  }

  /**
   * Copies the chunk, whose memory belongs to uWS. Returns false, keeping nothing of the chunk, if too many bytes are
   * held.
   */
  append(chunk: ArrayBuffer, isLast: boolean): boolean {
    if (this.#released || chunk.byteLength === 0) return true
    const needed = this.#size + chunk.byteLength
    const capacity = this.#bytes?.length ?? 0
    if (needed > capacity) {
      const grown = isLast
        ? needed
        : Math.min(Math.max(2 * capacity, needed, FIRST_ALLOCATION_BYTES), Math.max(this.#mostBytes, needed))
      if (!this.#held.take(grown - capacity)) return false
      this.#heldBytes = grown
      const bytes = grown < FIRST_ALLOCATION_BYTES ? Buffer.allocUnsafe(grown) : this.#memory.take(grown)
      this.#bytes?.copy(bytes, 0, 0, this.#size)
      this.forget()
      this.#bytes = bytes
    }
    this.#bytes?.set(new Uint8Array(chunk), this.#size)
    this.#size = needed
    return true
  }

  /**
   * Uses a body that arrived in one piece without a copy. Its memory belongs to uWS, which frees it after the current
   * call.
   */
  lend(chunk: ArrayBuffer): boolean {
    if (!this.#held.take(chunk.byteLength)) return false
    this.#heldBytes = chunk.byteLength
    this.#bytes = Buffer.from(chunk)
    this.#size = chunk.byteLength
    return true
  }

  /** Frees the buffer but keeps its bytes in the count, because the caller now holds a copy. */
  forget(): void {
    if (this.#bytes) this.#memory.giveBack(this.#bytes)
    this.#bytes = undefined
  }

  /** Frees the buffer and stops counting its bytes. Later chunks are dropped. Calling it again does nothing. */
  release(): void {
    this.#held.give(this.#heldBytes)
    this.#heldBytes = 0
    this.forget()
    this.#released = true
  }
}
