import { GrowingBuffer } from '../../clickhouse/native/growing-buffer.ts'
import { startOfString } from '../../clickhouse/native/native-string.ts'
import { column, TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { DebugIds } from './debug-ids.ts'
import type { Places } from './places.ts'

/**
 * Exceptions on their way from the batch of their spans or log records to the table `exceptions`. One after the other,
 * little-endian:
 *
 *   record := length(u32, of what follows) source(u8) escaped(u8) traceId(16) spanId(8) parentSpanId(8)
 *             occurredAt(u64) findingId(30) variantId(16)
 *             serviceName serviceVersion sessionId spanName type message stacktrace fingerprint
 *             browser system route environment host topFrame
 *             debugIds(varint n, n × (url id))
 *
 * A text is its length as a varint and its UTF-8 bytes, as in ClickHouse's format Native: it is copied into its column as it is.
 * Workspace, surface and arrival are those of the frame. A change of the form raises `RECORDS_VERSION`.
 */
const AT = {
  source: 4,
  escaped: 5,
  traceId: 6,
  spanId: 22,
  parentSpanId: 30,
  occurredAt: 38,
  findingId: 46,
  variantId: 76,
  texts: 92,
} as const
/** The texts by their positions in a record. */
export const TEXT = {
  serviceName: 0,
  serviceVersion: 1,
  sessionId: 2,
  spanName: 3,
  type: 4,
  message: 5,
  stacktrace: 6,
  fingerprint: 7,
  browser: 8,
  system: 9,
  route: 10,
  environment: 11,
  host: 12,
  topFrame: 13,
} as const
const TEXTS = Object.keys(TEXT) as (keyof typeof TEXT)[]

/** An exception. The ids are positions in `bytes`. */
interface ExceptionRecord extends Places {
  readonly bytes: Buffer
  readonly view: DataView
  readonly traceIdStart: number
  readonly spanIdStart: number
  /** Undefined without a parent, or if it is not known. */
  readonly parentSpanIdStart: number | undefined
  readonly source: number
  readonly escaped: boolean
  readonly timeLow: number
  readonly timeHigh: number
  readonly findingId: string
  /** 16 bytes. */
  readonly variantId: Buffer
  readonly serviceName: string
  readonly serviceVersion: string
  readonly sessionId: string
  readonly spanName: string
  readonly type: string
  readonly message: string
  readonly stacktrace: string
  readonly fingerprint: string
  /** As `topFrameOf` returns it. */
  readonly topFrame: string
  readonly debugIds: DebugIds
}

/** The records of a batch. Their memory counts like that of the columns, but they are not inserted with them. */
export class ExceptionRecords {
  readonly bytes = new GrowingBuffer()
  readonly buffer = new TableBuffer('exceptions', [column('records', 'String', this.bytes)])

  append(record: ExceptionRecord): void {
    const { bytes } = this
    const at = bytes.length
    bytes.u32(0)
    bytes.u8(record.source)
    bytes.u8(record.escaped ? 1 : 0)
    bytes.raw(record.bytes, record.view, record.traceIdStart, record.traceIdStart + 16)
    bytes.raw(record.bytes, record.view, record.spanIdStart, record.spanIdStart + 8)
    if (record.parentSpanIdStart === undefined) bytes.u64(0, 0)
    else bytes.raw(record.bytes, record.view, record.parentSpanIdStart, record.parentSpanIdStart + 8)
    bytes.u64(record.timeLow, record.timeHigh)
    bytes.rawText(record.findingId)
    bytes.rawBytes(record.variantId)
    for (const text of TEXTS) bytes.text(record[text])
    bytes.varint(record.debugIds.size)
    for (const [url, debugId] of record.debugIds) {
      bytes.text(url)
      bytes.text(debugId)
    }
    bytes.view.setUint32(at, bytes.length - at - 4, true)
    this.buffer.rows++
  }
}

/** Returns the end of the record that begins at `at`. Throws a RangeError if it is cut. */
function endOfRecord(bytes: Buffer, at: number): number {
  const end = at + 4 > bytes.length ? Number.POSITIVE_INFINITY : at + 4 + bytes.readUInt32LE(at)
  if (end > bytes.length || end < at + AT.texts) throw new RangeError('a record of an exception is cut')
  return end
}

/** Reads records where they are. Positions are those of the record that `next` has found. */
export class RecordReader {
  readonly bytes: Buffer
  readonly view: DataView
  #at = 0
  #end = 0
  /** Starts of the texts, each at its length, then the start of the debug ids. */
  readonly starts = new Uint32Array(TEXTS.length + 1)

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** Goes to the next record. Returns false after the last one. Throws a RangeError if it is damaged. */
  next(): boolean {
    if (this.#end >= this.bytes.length) return false
    this.#at = this.#end
    this.#end = endOfRecord(this.bytes, this.#at)
    let at = this.#at + AT.texts
    for (let text = 0; text < TEXTS.length; text++) {
      this.starts[text] = at
      at = this.#endOfText(at)
    }
    this.starts[TEXTS.length] = at
    return true
  }

  /** Returns the position of a part of fixed size. */
  at(part: Exclude<keyof typeof AT, 'texts'>): number {
    return this.#at + AT[part]
  }

  /** Decodes the text with this position in `TEXT`. */
  text(text: number): string {
    return this.#textAt(this.starts[text] as number, this.starts[text + 1] as number)
  }

  debugIds(): DebugIds {
    const { bytes } = this
    const ids = new Map<string, string>()
    let at = this.starts[TEXTS.length] as number
    let count = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] as number
      count |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    for (let i = 0; i < count; i++) {
      const afterUrl = this.#endOfText(at)
      const end = this.#endOfText(afterUrl)
      ids.set(this.#textAt(at, afterUrl), this.#textAt(afterUrl, end))
      at = end
    }
    if (at !== this.#end) throw new RangeError('a record of an exception is damaged')
    return ids
  }

  #textAt(start: number, end: number): string {
    return this.bytes.toString('utf8', startOfString(this.bytes, start), end)
  }

  #endOfText(start: number): number {
    let length = 0
    let at = start
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.bytes[at++] as number
      length |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    const end = at + length
    if (!(length >= 0 && end <= this.#end)) throw new RangeError('a text of an exception is cut')
    return end
  }
}
