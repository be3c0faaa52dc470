import { BufferPool } from '../../memory/buffer-pool.ts'

const KIB = 1024
const MIB = 1024 * KIB
const LEAST_POOLED_BYTES = 64 * KIB
const MOST_POOLED_BYTES = 4 * MIB
/** Memory that is kept while no body needs it. */
const IDLE_BYTES = 32 * MIB

/**
 * Memory of the bodies that arrive in pieces. Buffers of usual sizes are reused. All others are freed at once, not when V8
 * collects them, so that the memory of the process follows the bodies that it holds.
 */
export class BodyMemory {
  readonly #pool = new BufferPool(IDLE_BYTES, free)

  /** Returns how much memory a buffer of this length takes. */
  capacityOf(length: number): number {
    return isPooled(length) ? BufferPool.capacityOf(length) : length
  }

  /** Returns a buffer of exactly this capacity. Its bytes are undefined. Throws if there is no memory. */
  take(capacity: number): Buffer {
    // Not `allocUnsafe`, which lets small buffers share memory that lives as long as the last of them.
    return isPooled(capacity) ? this.#pool.take(capacity) : Buffer.allocUnsafeSlow(capacity)
  }

  /** Takes a buffer back. Its bytes must not be used afterwards. */
  giveBack(buffer: Buffer): void {
    if (isPooled(buffer.length)) this.#pool.giveBack(buffer)
    else free(buffer.buffer)
  }
}

function isPooled(capacity: number): boolean {
  return capacity >= LEAST_POOLED_BYTES && capacity <= MOST_POOLED_BYTES
}

/** Frees memory now. Measured: 0.3 µs with its allocation, instead of 2 µs when V8 collects it. */
function free(memory: ArrayBufferLike): void {
  if (memory instanceof ArrayBuffer) memory.transfer(0)
}
