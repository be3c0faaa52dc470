const MIN_CAPACITY_BYTES = 64 * 1024

/**
 * Memory that is used again and again. V8 counts what buffers hold, and answers every 30 MB of new ones with a collection
 * of the whole heap.
 */
export class BufferPool {
  readonly #maxIdleBytes: number
  /** By capacity, each a power of two: what of one is never written to is never resident. */
  readonly #idle = new Map<number, ArrayBufferLike[]>()
  readonly #lent = new WeakSet<ArrayBufferLike>()
  #idleBytes = 0

  constructor(maxIdleBytes: number) {
    this.#maxIdleBytes = maxIdleBytes
  }

  /** A buffer of this length, at the start of its memory. Its bytes are whatever was there before. */
  take(length: number): Buffer {
    let capacity = MIN_CAPACITY_BYTES
    while (capacity < length) capacity *= 2
    let memory = this.#idle.get(capacity)?.pop()
    if (memory === undefined) memory = Buffer.allocUnsafeSlow(capacity).buffer
    else this.#idleBytes -= capacity
    this.#lent.add(memory)
    return Buffer.from(memory, 0, length)
  }

  /** Nobody may look at the buffer, or at a part of it, after this. One that did not come from here is left alone. */
  giveBack(buffer: Buffer): void {
    const memory = buffer.buffer
    if (!this.#lent.delete(memory)) return
    const capacity = memory.byteLength
    if (this.#idleBytes + capacity > this.#maxIdleBytes) this.#clear() // of other capacities than those wanted now
    if (capacity > this.#maxIdleBytes) return
    const idle = this.#idle.get(capacity)
    if (idle) idle.push(memory)
    else this.#idle.set(capacity, [memory])
    this.#idleBytes += capacity
  }

  #clear(): void {
    this.#idle.clear()
    this.#idleBytes = 0
  }
}
