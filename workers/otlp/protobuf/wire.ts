import { MIB } from '../../../schemas/units.ts'
import type { Scrubber } from '../../../shared/scrubbing/scrubber.ts'
import { INVALID_TAG, OVERLONG_VARINT, TOO_MANY_PIECES, TRUNCATED } from './refusal.ts'

/** Wire type of varints. */
export const VARINT = 0
/** Wire type of values of eight bytes. */
export const FIXED64 = 1
/** Wire type of texts, bytes, messages and packed values. */
export const LENGTH_DELIMITED = 2
/** Wire type of values of four bytes. */
export const FIXED32 = 5

/** Bytes that a payload may still copy to merge split messages. */
interface MergeAllowance {
  remainingBytes: number
}

/**
 * Protobuf wire primitives over the bytes of one message. Reads take a position and the end of the current message, and
 * set `next` to the position after the read. Callers keep their position in a local, which makes the loops fast.
 * Unknown fields are read like any other field, so skipping needs no extra code.
 */
export class WireCursor {
  readonly bytes: Buffer
  readonly view: DataView
  /** Position after the last read. */
  next = 0
  /** Tag of the last field: field number << 3 | wire type. */
  tag = 0
  /** Start of the content of the last field, after its length. */
  start = 0
  /** The last varint, in two unsigned halves. */
  low = 0
  high = 0

  /** Allowance that all cursors over a payload share. */
  readonly merge: MergeAllowance
  /** Replaces values of attributes as they are read. */
  readonly scrubber: Scrubber | undefined

  constructor(bytes: Buffer, scrubber?: Scrubber, merge: MergeAllowance = { remainingBytes: MERGE_LIMIT_BYTES }) {
    this.bytes = bytes
    this.scrubber = scrubber
    this.merge = merge
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** Reads a whole field at `pos` and sets `tag`, `start` and `next`, for a varint also `low` and `high`. */
  readField(pos: number, end: number): number {
    const tag = this.readTag(pos, end)
    this.tag = tag
    this.start = this.next
    switch (tag & 7) {
      case VARINT:
        this.readVarint(this.start, end)
        break
      case LENGTH_DELIMITED: {
        const length = this.readLength(this.start, end)
        this.start = this.next
        this.next += length
        break
      }
      case FIXED64:
        this.next = this.start + 8
        break
      case FIXED32:
        this.next = this.start + 4
        break
      default:
        throw INVALID_TAG
    }
    if (this.next > end) throw TRUNCATED
    return tag
  }

  /** Reads a tag. The caller checks its wire type. Refuses field number 0 and tags over 32 bits or five bytes. */
  readTag(pos: number, end: number): number {
    const first = pos < end ? (this.bytes[pos] as number) : 0x80
    if (first < 0x80) {
      if (first < 8) throw INVALID_TAG
      this.next = pos + 1
      return first
    }
    const tag = this.readVarint(pos, end)
    if (tag < 8 || this.high !== 0 || this.next - pos > 5) throw INVALID_TAG
    return tag
  }

  /** Reads the length of a length-delimited field. Refuses a length past the end of the message. */
  readLength(pos: number, end: number): number {
    const first = pos < end ? (this.bytes[pos] as number) : 0x80
    if (first < 0x80) {
      this.next = pos + 1
      if (first > end - this.next) throw TRUNCATED
      return first
    }
    const length = this.readVarint(pos, end)
    if (this.high !== 0 || length > end - this.next) throw TRUNCATED
    return length
  }

  /**
   * Reads a varint of up to ten bytes and returns its low 32 bits. Bits past the 64th are dropped, as in protobuf's C++
   * and JavaScript. A padded varint is valid.
   */
  readVarint(pos: number, end: number): number {
    const bytes = this.bytes
    let low = 0
    let high = 0
    for (let shift = 0, at = pos; shift < 70; shift += 7) {
      if (at >= end) throw TRUNCATED
      const byte = bytes[at++] as number
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (shift - 32)
      if (byte < 0x80) {
        this.next = at
        this.low = low >>> 0
        this.high = high >>> 0
        return this.low
      }
    }
    throw OVERLONG_VARINT
  }

  /** Refuses the message `[start, end)` unless it consists of whole fields. */
  checkFraming(start: number, end: number): void {
    for (let pos = start; pos < end; pos = this.next) this.readField(pos, end)
  }
}

/** Largest number of bytes that merging may copy per payload. No SDK splits messages, and nested pieces multiply. */
const MERGE_LIMIT_BYTES = 64 * MIB
const MIN_CAPACITY_BYTES = 64

/**
 * An embedded message in several pieces. Protobuf defines their merge as parsing the concatenation of their bytes. Each
 * piece must be well-formed.
 */
export class MessagePieces {
  private readonly merge: MergeAllowance
  private readonly scrubber: Scrubber | undefined
  private bytes = Buffer.allocUnsafe(MIN_CAPACITY_BYTES)
  private length = 0

  /** Begins with the first piece. At least one more must follow. */
  constructor(wire: WireCursor, start: number, end: number) {
    this.merge = wire.merge
    this.scrubber = wire.scrubber
    this.add(wire, start, end)
  }

  add(wire: WireCursor, start: number, end: number): void {
    const size = end - start
    if (size === 0) return
    wire.checkFraming(start, end)
    this.merge.remainingBytes -= size
    if (this.merge.remainingBytes < 0) throw TOO_MANY_PIECES
    if (this.length + size > this.bytes.length) this.grow(this.length + size)
    wire.bytes.copy(this.bytes, this.length, start, end)
    this.length += size
  }

  merged(): WireCursor {
    return new WireCursor(this.bytes.subarray(0, this.length), this.scrubber, this.merge)
  }

  private grow(needed: number): void {
    const bytes = Buffer.allocUnsafe(Math.max(needed, this.bytes.length * 2))
    this.bytes.copy(bytes, 0, 0, this.length)
    this.bytes = bytes
  }
}
