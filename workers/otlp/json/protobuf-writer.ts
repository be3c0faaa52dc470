import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import type { Field } from './message-type.ts'

/** Room for a tag and any number, or a tag and a length. */
const TAG_AND_NUMBER_BYTES = 16

/** Writes protobuf's wire format to a buffer that all messages reuse. */
export class ProtobufWriter {
  readonly out = new GrowingBuffer()

  tag(field: Field): void {
    const out = this.out
    out.reserve(TAG_AND_NUMBER_BYTES)
    out.view.setUint16(out.length, field.tag, true)
    out.length += field.tagBytes
  }

  varint(low: number, high: number): void {
    const out = this.out
    if (high === 0) {
      if (low < 0x80) out.u8(low)
      else out.varint(low)
      return
    }
    out.reserve(10)
    const bytes = out.bytes
    let at = out.length
    let lower = low
    let upper = high
    while (upper !== 0 || lower >= 0x80) {
      bytes[at++] = (lower & 0x7f) | 0x80
      lower = ((lower >>> 7) | (upper << 25)) >>> 0
      upper >>>= 7
    }
    bytes[at++] = lower
    out.length = at
  }

  double(value: number): void {
    const out = this.out
    out.reserve(8)
    out.view.setFloat64(out.length, value, true)
    out.length += 8
  }

  /** Reserves room for a length. Returns the start of the content. */
  openLength(lengthBytes: number): number {
    const out = this.out
    out.reserve(lengthBytes)
    out.length += lengthBytes
    return out.length
  }

  /** Writes the length before the content at `start`. Moves the content if the room is too small for its length. */
  closeLength(start: number, lengthBytes: number): void {
    const out = this.out
    const size = out.length - start
    if (size >>> (7 * lengthBytes) === 0) {
      putLength(out, start, lengthBytes)
      return
    }
    let needed = lengthBytes + 1
    while (size >>> (7 * needed) !== 0) needed++
    const shift = needed - lengthBytes
    out.reserve(shift)
    out.bytes.copyWithin(start + shift, start, out.length)
    out.length += shift
    putLength(out, start + shift, needed)
  }
}

/** Writes the length of the bytes from `start` to the end of `out` into the `lengthBytes` before them, padded. */
export function putLength(out: GrowingBuffer, start: number, lengthBytes: number): void {
  let rest = out.length - start
  for (let at = start - lengthBytes; at < start - 1; at++) {
    out.bytes[at] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  out.bytes[start - 1] = rest
}
