import { GrowingBuffer } from './growing-buffer.ts'

/** Native format of LowCardinality: u64 version 1, then per block u64 flags, the keys, u64 rows and the indexes. */
const KEYS_VERSION = 1
const HAS_ADDITIONAL_KEYS = 1 << 9
const NEED_UPDATE_DICTIONARY = 1 << 10

/** The distinct values of a LowCardinality column. Index 0 is the empty string, as in ClickHouse. */
export class Dictionary {
  private readonly indexes = new Map<string, number>([['', 0]])
  private readonly texts = ['']
  private readonly positions = [0]
  readonly keys = new GrowingBuffer()

  constructor() {
    this.keys.text('')
  }

  get length(): number {
    return this.texts.length
  }

  /** Returns the index of a value. A new value becomes a key. */
  indexOf(text: string): number {
    const known = this.indexes.get(text)
    if (known !== undefined) return known
    const index = this.texts.length
    const position = this.keys.length
    this.keys.text(text)
    this.texts.push(text)
    this.positions.push(position)
    this.indexes.set(text, index)
    return index
  }

  /** Returns the value with this index. */
  textOf(index: number): string {
    return this.texts[index] as string
  }

  beginPayload(): void {
    this.keys.beginPayload()
  }

  truncate(length: number): void {
    if (length === this.texts.length) return
    this.keys.truncate(this.positions[length] ?? this.keys.length)
    for (const text of this.texts.splice(length)) this.indexes.delete(text)
    this.positions.length = length
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

  private forget(): void {
    this.indexes.clear()
    this.indexes.set('', 0)
    this.texts.length = 1
    this.positions.length = 1
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
    const rows = this.indexes.length / 4
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
      this.narrowed(widthBits, rows),
    ]
  }

  private narrowed(widthBits: number, rows: number): Uint8Array {
    if (widthBits === 32) return this.indexes.written()
    const wide = new Uint32Array(this.indexes.bytes.buffer, 0, rows)
    if (widthBits === 8) return new Uint8Array(wide)
    return new Uint8Array(new Uint16Array(wide).buffer)
  }
}
