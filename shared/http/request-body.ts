import type { BufferPool } from '../memory/buffer-pool.ts'

/** A count of bytes with a ceiling, shared by everything that counts against it. */
export class HeldBytes {
  #used = 0
  readonly #limitBytes: number

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get used(): number {
    return this.#used
  }

  /** Nothing is taken when it returns false. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#limitBytes) return false
    this.#used += bytes
    return true
  }

  give(bytes: number): void {
    this.#used -= bytes
  }
}

const NO_BYTES = Buffer.alloc(0)
const FIRST_ALLOCATION_BYTES = 64 * 1024

/**
 * The bytes of one request while they arrive. Memory follows what came, not what was announced: a content-length costs its
 * sender nothing. It grows by doubling into one buffer, since a list of chunks would let a sender of single bytes take a
 * hundred times what is counted.
 */
export class RequestBody {
  readonly #held: HeldBytes
  readonly #memory: BufferPool
  readonly #mostBytes: number
  #bytes: Buffer | undefined
  #size = 0
  #heldBytes = 0
  #released = false

  /** `mostBytes`: the announced length, or else the limit; it bounds the growth. */
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

  /** Copies the chunk, whose memory is uWS's own. Returns false, with nothing kept of it, when too many bytes are held. */
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

  /** A whole body that came in one piece, as it stands in uWS's memory: it is gone when the call that brought it returns. */
  lend(chunk: ArrayBuffer): boolean {
    if (!this.#held.take(chunk.byteLength)) return false
    this.#heldBytes = chunk.byteLength
    this.#bytes = Buffer.from(chunk)
    this.#size = chunk.byteLength
    return true
  }

  /** Lets go of the memory, while its bytes go on counting as held: whoever has copied them holds them. */
  forget(): void {
    if (this.#bytes) this.#memory.giveBack(this.#bytes)
    this.#bytes = undefined
  }

  /** Lets go of the bytes; what comes after is not kept. Calling it again does nothing. */
  release(): void {
    this.#held.give(this.#heldBytes)
    this.#heldBytes = 0
    this.forget()
    this.#released = true
  }
}
