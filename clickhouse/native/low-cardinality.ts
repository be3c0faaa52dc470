import { GrowingBuffer, MAX_LENGTH_BYTES } from './growing-buffer.ts'
import { startOfString } from './native-string.ts'

/** Native format of LowCardinality: u64 version 1, then per block u64 flags, the keys, u64 rows and the indexes. */
const KEYS_VERSION = 1
const HAS_ADDITIONAL_KEYS = 1 << 9
const NEED_UPDATE_DICTIONARY = 1 << 10
/** Bytes of the empty string as a key: its length. */
const EMPTY_KEY_BYTES = 1
/** Memory that a key takes in addition to its bytes in the column: the text, and its places in a map and two arrays. */
const KEY_BYTES = 128

/**
 * Longer values are not remembered as texts: each is a key of its own, which ClickHouse joins with equal ones. A text of
 * 30 MiB would be in memory twice.
 */
const REMEMBERED_LENGTH = 64 * 1024

/** The distinct values of a LowCardinality column. Index 0 is the empty string, as in ClickHouse. */
export class Dictionary {
  private readonly indexes = new Map<string, number>([['', 0]])
  private readonly texts: (string | undefined)[] = ['']
  /** The start of each key, and the end of the last one. */
  private readonly positions: number[] = []
  readonly keys = new GrowingBuffer()

  constructor() {
    this.forget()
    this.keys.text('')
  }

  get length(): number {
    return this.texts.length
  }

  /** Bytes of the keys, and of the memory beside them. */
  get usedBytes(): number {
    return this.keys.length + this.texts.length * KEY_BYTES
  }

  /** Bytes of memory that the keys occupy, including what is not used. */
  get capacityBytes(): number {
    return this.keys.bytes.length + this.texts.length * KEY_BYTES
  }

  /** Returns the index of a value. A new value becomes a key. */
  indexOf(text: string): number {
    if (text === '') return 0
    const known = this.indexes.get(text)
    if (known !== undefined) return known
    this.keys.text(text)
    return this.add(text.length <= REMEMBERED_LENGTH ? text : undefined)
  }

  /** Begins a value that is written to `keys` in pieces. All values of a dictionary are, or none. */
  beginKey(): void {
    this.keys.beginString()
  }

  /** Ends the value and returns its index. */
  endKey(): number {
    const { keys } = this
    const at = this.startOf(this.texts.length)
    const start = at + MAX_LENGTH_BYTES
    const isRemembered = keys.length - start <= REMEMBERED_LENGTH
    // A character for each byte: texts that are no UTF-8 stay different.
    const text = isRemembered ? keys.bytes.toString('latin1', start, keys.length) : undefined
    const known = text === undefined ? undefined : this.indexes.get(text)
    if (known === undefined) {
      keys.endString(at)
      return this.add(text)
    }
    keys.truncate(at)
    return known
  }

  /** Returns where the value with this index begins in `keys`, with its length. It ends where the next one begins. */
  startOf(index: number): number {
    return this.positions[index] as number
  }

  /** Returns where the bytes of the value begin in `keys`. They end where the next value begins. */
  bytesOf(index: number): number {
    return startOfString(this.keys.bytes, this.startOf(index))
  }

  /** Decodes the value with this index. */
  textOf(index: number): string {
    return this.keys.bytes.toString('utf8', this.bytesOf(index), this.startOf(index + 1))
  }

  truncate(length: number): void {
    // Without the key that was begun, if the payload was refused within it.
    this.keys.truncate(this.startOf(length))
    if (length === this.texts.length) return
    for (const text of this.texts.splice(length)) if (text !== undefined) this.indexes.delete(text)
    this.positions.length = length + 1
  }

  reset(): void {
    this.forget()
    this.keys.reset()
    this.keys.text('')
  }

  shrink(): void {
    this.forget()
    this.keys.shrink()
    this.keys.text('')
  }

  private add(text: string | undefined): number {
    const index = this.texts.length
    this.texts.push(text)
    this.positions.push(this.keys.length)
    if (text !== undefined) this.indexes.set(text, index)
    return index
  }

  private forget(): void {
    this.indexes.clear()
    this.indexes.set('', 0)
    this.texts.length = 1
    this.positions.splice(0, this.positions.length, 0, EMPTY_KEY_BYTES)
  }
}

/** A LowCardinality(String) column. Indexes are kept as u32 and narrowed to the needed width when written. */
export class LowCardinality {
  readonly dictionary = new Dictionary()
  readonly indexes = new GrowingBuffer()

  indexOf(text: string): number {
    return this.dictionary.indexOf(text)
  }

  /** Appends the value with this index for `count` rows. */
  fill(index: number, count: number): void {
    this.indexes.fillU32(index, count)
  }

  get leaves(): [Dictionary, GrowingBuffer] {
    return [this.dictionary, this.indexes]
  }

  get byteLength(): number {
    return this.dictionary.keys.length + this.indexes.length
  }

  chunks(): Uint8Array[] {
    return this.chunksOf(this.indexes.written())
  }

  /** Returns the column with these indexes, as u32, instead of its own. It has the whole dictionary. */
  chunksOf(indexes: Uint8Array): Uint8Array[] {
    const rows = indexes.length / 4
    const keyCount = this.dictionary.length
    const widthBits = keyCount <= 1 << 8 ? 8 : keyCount <= 1 << 16 ? 16 : 32
    const header = new DataView(new ArrayBuffer(24))
    header.setBigUint64(0, BigInt(KEYS_VERSION), true)
    header.setBigUint64(8, BigInt(HAS_ADDITIONAL_KEYS | NEED_UPDATE_DICTIONARY | Math.log2(widthBits / 8)), true)
    header.setBigUint64(16, BigInt(keyCount), true)
    const rowCount = new DataView(new ArrayBuffer(8))
    rowCount.setBigUint64(0, BigInt(rows), true)
    return [
      new Uint8Array(header.buffer),
      this.dictionary.keys.written(),
      new Uint8Array(rowCount.buffer),
      narrowed(indexes, widthBits, rows),
    ]
  }
}

function narrowed(indexes: Uint8Array, widthBits: number, rows: number): Uint8Array {
  if (widthBits === 32) return indexes
  const wide = new Uint32Array(indexes.buffer, 0, rows)
  if (widthBits === 8) return new Uint8Array(wide)
  return new Uint8Array(new Uint16Array(wide).buffer)
}
