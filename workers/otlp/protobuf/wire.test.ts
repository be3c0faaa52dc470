import { BinaryWriter } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { INVALID_TAG, OVERLONG_VARINT, TRUNCATED } from './refusal.ts'
import { MessagePieces, WireCursor } from './wire.ts'

function cursor(...bytes: number[]): WireCursor {
  return new WireCursor(Buffer.from(bytes))
}

describe('a wire cursor', () => {
  it('reads varints of 64 bits in halves', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), value => {
        const bytes = Buffer.from(new BinaryWriter().uint64(value).finish())
        const wire = new WireCursor(bytes)
        expect(wire.readVarint(0, bytes.length)).toBe(Number(value & 0xffff_ffffn))
        expect((BigInt(wire.high) << 32n) | BigInt(wire.low)).toBe(value)
        expect(wire.next).toBe(bytes.length)
      }),
    )
  })

  it('takes a padded varint for its value and drops bits past the 64th', () => {
    const wire = cursor(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)
    expect(wire.readVarint(0, 10)).toBe(1)
    const wide = cursor(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
    expect([wide.readVarint(0, 10), wide.high]).toEqual([0xffff_ffff, 0xffff_ffff])
  })

  it('refuses varints of eleven bytes and those that reach past the end', () => {
    expect(() => cursor(...Array(10).fill(0x80), 0).readVarint(0, 11)).toThrow(OVERLONG_VARINT)
    expect(() => cursor(0x80, 0x80).readVarint(0, 2)).toThrow(TRUNCATED)
    expect(() => cursor(0x80, 0x01).readVarint(0, 1)).toThrow(TRUNCATED)
  })

  it.each([
    ['field number 0', [0x00, 0x01], INVALID_TAG],
    ['field number 0 in two bytes', [0x82, 0x00, 0x00], INVALID_TAG],
    ['the start of a group', [0x0b], INVALID_TAG],
    ['the end of a group', [0x0c], INVALID_TAG],
    ['wire type 6', [0x0e], INVALID_TAG],
    ['wire type 7', [0x0f], INVALID_TAG],
    ['a tag of 33 bits', [0x8a, 0x80, 0x80, 0x80, 0x10, 0x00], INVALID_TAG],
    ['a tag of six bytes', [0x8a, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00], INVALID_TAG],
    ['a length past the end', [0x0a, 0x02, 0x01], TRUNCATED],
    ['a length of 2^32', [0x0a, 0x80, 0x80, 0x80, 0x80, 0x10], TRUNCATED],
    ['a length of 2^32 - 1', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], TRUNCATED],
    ['a length alone', [0x0a], TRUNCATED],
    ['half a fixed64', [0x09, 1, 2, 3, 4], TRUNCATED],
    ['half a fixed32', [0x0d, 1, 2], TRUNCATED],
  ])('refuses %s', (_, bytes, refusal) => {
    expect(() => cursor(...bytes).readField(0, bytes.length)).toThrow(refusal)
  })

  it('reads a field of every wire type whole', () => {
    const bytes = Buffer.from(
      new BinaryWriter()
        .tag(2, 0)
        .uint64(300n)
        .tag(3, 1)
        .fixed64(7n)
        .tag(100, 2)
        .string('abc')
        .tag(5, 5)
        .fixed32(9)
        .finish(),
    )
    const wire = new WireCursor(bytes)
    const fields: [number, number, number][] = []
    for (let pos = 0; pos < bytes.length; pos = wire.next) {
      const tag = wire.readField(pos, bytes.length)
      fields.push([tag, wire.start, wire.next])
    }
    expect(fields).toEqual([
      [2 << 3, 1, 3],
      [(3 << 3) | 1, 4, 12],
      [(100 << 3) | 2, 15, 18],
      [(5 << 3) | 5, 19, 23],
    ])
  })

  it('reads within its message only, though more bytes follow', () => {
    const wire = cursor(0x0a, 0x03, 0x61, 0x62, 0x63)
    expect(() => wire.readField(0, 4)).toThrow(TRUNCATED)
    expect(() => cursor(0x0a, 0x80, 0x01).readField(0, 2)).toThrow(TRUNCATED)
  })

  it('joins the pieces of a message, each of which must be whole', () => {
    const wire = cursor(0x08, 0x01, 0x10, 0x02)
    const pieces = new MessagePieces(wire, 0, 2)
    pieces.add(wire, 2, 4)
    expect(pieces.merged().bytes).toEqual(Buffer.from([0x08, 0x01, 0x10, 0x02]))
    expect(() => pieces.add(wire, 2, 3)).toThrow(TRUNCATED)
  })
})
