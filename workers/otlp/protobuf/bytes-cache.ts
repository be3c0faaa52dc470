/** Approximate memory of an entry in addition to its bytes. */
const ENTRY_BYTES = 250

/** A value made from bytes that repeat. */
interface Entry<T> {
  view: DataView
  value: T
}

/**
 * A cache of values by the bytes they were made from. Each hash has one entry, the latest, so constructed collisions
 * are no slower than having no cache. The latest entry is compared without a hash, because the payloads of one client
 * follow each other. A look-up by 400 bytes takes 0.1 µs there, else 0.3; a Map with a latin1 string of them takes 0.6.
 */
export class BytesCache<T> {
  private readonly entries = new Map<number, Entry<T>>()
  private latest: Entry<T> | undefined
  private readonly limitBytes: number
  private heldBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get(view: DataView, start: number, end: number): T | undefined {
    const { latest } = this
    if (latest !== undefined && isEqual(latest.view, view, start, end)) return latest.value
    const entry = this.entries.get(hashOf(view, start, end))
    if (entry === undefined || !isEqual(entry.view, view, start, end)) return undefined
    this.latest = entry
    return entry.value
  }

  /** Keeps the value, unless its bytes are more than an eighth of the limit: they would take the place of all others. */
  set(bytes: Buffer, view: DataView, start: number, end: number, value: T): void {
    if (end - start > this.limitBytes / 8) return
    this.heldBytes += end - start + ENTRY_BYTES
    if (this.heldBytes > this.limitBytes) this.clear()
    const copy = new Uint8Array(end - start)
    copy.set(bytes.subarray(start, end))
    this.latest = { view: new DataView(copy.buffer), value }
    this.entries.set(hashOf(view, start, end), this.latest)
  }

  clear(): void {
    this.entries.clear()
    this.latest = undefined
    this.heldBytes = 0
  }
}

/** Returns whether `known` has the bytes `[start, end)` of `view`, four at a time. */
function isEqual(known: DataView, view: DataView, start: number, end: number): boolean {
  const length = end - start
  if (known.byteLength !== length) return false
  let at = 0
  for (; at + 4 <= length; at += 4) if (known.getInt32(at, true) !== view.getInt32(start + at, true)) return false
  for (; at < length; at++) if (known.getUint8(at) !== view.getUint8(start + at)) return false
  return true
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
