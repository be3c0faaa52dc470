/** What an entry takes besides its bytes, about. */
const ENTRY_BYTES = 250

/** What was made of bytes that come again and again. */
interface Entry<T> {
  bytes: Buffer
  value: T
}

/**
 * Values by the bytes they were made of. A hash holds one entry, the latest: whoever constructs collisions gets what
 * there would be without a cache, and nothing slower. Finding a value by 400 bytes takes 0.3 µs; by a latin1 string of
 * them in a Map it takes 0.6.
 */
export class BytesCache<T> {
  private readonly entries = new Map<number, Entry<T>>()
  private readonly limitBytes: number
  private heldBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get(bytes: Buffer, view: DataView, start: number, end: number): T | undefined {
    const entry = this.entries.get(hashOf(view, start, end))
    if (entry === undefined || entry.bytes.length !== end - start) return undefined
    return bytes.compare(entry.bytes, 0, entry.bytes.length, start, end) === 0 ? entry.value : undefined
  }

  set(bytes: Buffer, view: DataView, start: number, end: number, value: T): void {
    this.heldBytes += end - start + ENTRY_BYTES
    if (this.heldBytes > this.limitBytes) this.clear()
    this.entries.set(hashOf(view, start, end), { bytes: Buffer.from(bytes.subarray(start, end)), value })
  }

  clear(): void {
    this.entries.clear()
    this.heldBytes = 0
  }
}

function hashOf(view: DataView, start: number, end: number): number {
  let hash = end - start
  let at = start
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(hash ^ view.getUint32(at, true), 0x9e37_79b1)
    hash ^= hash >>> 15
  }
  for (; at < end; at++) hash = Math.imul(hash ^ view.getUint8(at), 0x0100_0193)
  return hash
}
