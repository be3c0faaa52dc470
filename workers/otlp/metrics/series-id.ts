import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { ESCAPED_VALUE } from '../../../clickhouse/tables/packed-attributes.ts'
import type { PackedAttributes } from '../protobuf/packed-attributes.ts'

/** Buffer to encode texts that are hashed rarely. */
const scratch = new GrowingBuffer()

/** A 64-bit hash in two 32-bit lanes, because JavaScript has no 64-bit multiplication. */
export class Hash64 {
  low = 0
  high = 0

  begin(): void {
    this.low = 0x243f_6a88
    this.high = 0x85a3_08d3 | 0
  }

  word(word: number): void {
    const low = Math.imul(this.low ^ word, 0x85eb_ca6b)
    this.low = low ^ (low >>> 13)
    const high = Math.imul(this.high + word, 0xc2b2_ae35)
    this.high = high ^ (high >>> 16)
  }

  /**
   * Adds the bytes `[start, end)` as little-endian words, padded with zeros. The bytes must include their length. Up to
   * three bytes after `end` are read and ignored, so they must exist, as in a GrowingBuffer.
   */
  bytes(view: DataView, start: number, end: number): void {
    let { low, high } = this
    for (let at = start; at < end; at += 4) {
      let word = view.getUint32(at, true)
      if (at + 4 > end) word &= (1 << ((end - at) << 3)) - 1
      low = Math.imul(low ^ word, 0x85eb_ca6b)
      low ^= low >>> 13
      high = Math.imul(high + word, 0xc2b2_ae35)
      high ^= high >>> 16
    }
    this.low = low
    this.high = high
  }

  /** Adds a text in the format of a String column: its length in UTF-8 as a varint, then its bytes. */
  text(text: string): void {
    scratch.reset()
    scratch.text(text)
    this.bytes(scratch.view, 0, scratch.length)
  }

  /** Adds another hash as two words. */
  hash(other: { readonly low: number; readonly high: number }): void {
    this.word(other.low)
    this.word(other.high)
  }

  /** Makes every bit depend on every other, with MurmurHash3's finalizer and one lane added to the other. */
  finish(): void {
    this.low = avalanche(this.low + this.high)
    this.high = avalanche(this.high + this.low)
  }
}

function avalanche(lane: number): number {
  let mixed = lane ^ (lane >>> 16)
  mixed = Math.imul(mixed, 0x85eb_ca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2_ae35)
  return mixed ^ (mixed >>> 16)
}

/** Hash of a set of attributes in any order: the sum of their hashes, lane by lane. */
export class AttributeSetHash {
  low = 0
  high = 0
  private readonly one = new Hash64()

  begin(): void {
    this.low = 0
    this.high = 0
  }

  /** Adds the last attribute, whose key begins at `keyStart` with its length. Its value is hashed as it is stored. */
  add({ keys, keyEnd, type, isEscaped, values, valueStart, valueEnd }: PackedAttributes, keyStart: number): void {
    const one = this.one
    one.begin()
    one.word(isEscaped ? type | ESCAPED_VALUE : type)
    one.bytes(keys.view, keyStart, keyEnd)
    one.word(valueEnd - valueStart)
    one.bytes(values.view, valueStart, valueEnd)
    one.finish()
    this.low = (this.low + one.low) | 0
    this.high = (this.high + one.high) | 0
  }
}
