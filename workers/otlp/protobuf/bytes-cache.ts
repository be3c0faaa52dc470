/** Approximate memory of an entry in addition to its bytes. */
const ENTRY_BYTES = 250

/** A value made from bytes that repeat. */
interface Entry<T> {
  bytes: Buffer
  value: T
}

/**
 * A cache of values by the bytes they were made from. Each hash has one entry, the latest, so constructed collisions
 * are no slower than having no cache. A look-up by 400 bytes takes 0.3 µs; a Map with a latin1 string of them takes
 * 0.6.
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

  /** Keeps the value, unless its bytes are more than an eighth of the limit: they would take the place of all others. */
  set(bytes: Buffer, view: DataView, start: number, end: number, value: T): void {
    if (end - start > this.limitBytes / 8) return
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
