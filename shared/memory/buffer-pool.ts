const MIN_CAPACITY_BYTES = 64 * 1024

/**
 * Reuses the memory of buffers. V8 counts the memory of new buffers, and collects the whole heap for every 30 MB of them.
 */
export class BufferPool {
  readonly #maxIdleBytes: number
  /** Free memory by capacity, a power of two. Pages that are never written to never become resident. */
  readonly #idle = new Map<number, ArrayBufferLike[]>()
  readonly #lent = new WeakSet<ArrayBufferLike>()
  #idleBytes = 0

  constructor(maxIdleBytes: number) {
    this.#maxIdleBytes = maxIdleBytes
  }

  /** Returns a buffer of this length at the start of its memory. Its bytes are undefined. */
  take(length: number): Buffer {
    let capacity = MIN_CAPACITY_BYTES
    while (capacity < length) capacity *= 2
    let memory = this.#idle.get(capacity)?.pop()
    if (memory === undefined) memory = Buffer.allocUnsafeSlow(capacity).buffer
    else this.#idleBytes -= capacity
    this.#lent.add(memory)
    return Buffer.from(memory, 0, length)
  }

  /**
   * Takes over a buffer that has memory of its own, if the pool would not keep so much: giving the buffer back frees the memory.
   * Returns whether it did.
   */
  adopt({ buffer }: Buffer): boolean {
    if (buffer.byteLength <= Math.max(this.#maxIdleBytes, Buffer.poolSize)) return false
    this.#lent.add(buffer)
    return true
  }

  /**
   * Takes a buffer back, which must not be used afterwards, not even a part of it. Memory that is not kept is freed at once:
   * V8 would free tens of megabytes of it only after a garbage collection. Ignores a buffer of another source.
   */
  giveBack(buffer: Buffer): void {
    const memory = buffer.buffer
    if (!this.#lent.delete(memory)) return
    const capacity = memory.byteLength
    this.#makeRoom(capacity)
    if (this.#idleBytes + capacity > this.#maxIdleBytes) {
      free(memory)
      return
    }
    const idle = this.#idle.get(capacity)
    if (idle) idle.push(memory)
    else this.#idle.set(capacity, [memory])
    this.#idleBytes += capacity
  }

  /** Frees memory of other capacities until there is room for this one, which is the one in use now. */
  #makeRoom(capacity: number): void {
    if (capacity > this.#maxIdleBytes) return
    for (const [other, idle] of this.#idle) {
      while (other !== capacity && idle.length > 0 && this.#idleBytes + capacity > this.#maxIdleBytes) {
        free(idle.pop() as ArrayBufferLike)
        this.#idleBytes -= other
      }
    }
  }
}

function free(memory: ArrayBufferLike): void {
  ;(memory as ArrayBuffer).transfer(0)
}
