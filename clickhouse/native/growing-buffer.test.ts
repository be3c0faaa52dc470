import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { GrowingBuffer, RowsTooLarge } from './growing-buffer.ts'

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

describe('a growing buffer', () => {
  it('writes numbers little-endian', () => {
    const buffer = new GrowingBuffer()
    buffer.u8(0xfe)
    buffer.u16(0x1234)
    buffer.u32(0xffff_fffe)
    buffer.u64(0x0102_0304, 0x0506_0708)
    expect(Buffer.from(buffer.written()).toString('hex')).toBe('fe3412feffffff0403020108070605')
  })

  it('copies strings of any length from any position, and nothing past them', () => {
    const lengths = fc.oneof(fc.nat(80), fc.constantFrom(127, 128, 16_383, 16_384, 70_000))
    const strings = fc.array(fc.tuple(lengths, fc.nat(5), fc.nat(5)), { maxLength: 6 })
    fc.assert(
      fc.property(strings, parts => {
        const buffer = new GrowingBuffer()
        const expected: Buffer[] = []
        for (const [length, before, after] of parts) {
          const source = Buffer.alloc(before + length + after, 'Ab3').fill(0x7e, before + length)
          buffer.string(source, viewOf(source), before, before + length)
          const prefix = new GrowingBuffer()
          prefix.varint(length)
          expected.push(Buffer.from(prefix.written()), source.subarray(before, before + length))
        }
        expect(Buffer.from(buffer.written()).equals(Buffer.concat(expected))).toBe(true)
      }),
    )
  })

  it('writes texts as UTF-8 after their length in bytes', () => {
    const buffer = new GrowingBuffer()
    buffer.text('é👩‍🚀')
    expect(Buffer.from(buffer.written())).toEqual(
      Buffer.from('\x0d\xc3\xa9\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80', 'latin1'),
    )
  })

  it('writes texts of all lengths, ASCII and others', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('a', '~', '\x7f', '\x80', 'é', '🚀'), maxLength: 80 })),
        texts => {
          const buffer = new GrowingBuffer()
          const expected = new GrowingBuffer()
          for (const text of texts) {
            buffer.text(text)
            const bytes = Buffer.from(text)
            expected.string(bytes, viewOf(bytes), 0, bytes.length)
          }
          expect(Buffer.from(buffer.written()).equals(expected.written())).toBe(true)
        },
      ),
    )
  })

  it('fills runs of equal values', () => {
    const buffer = new GrowingBuffer()
    buffer.fillU32(7, 3)
    buffer.fillU64(1, 2, 2)
    expect(Buffer.from(buffer.written()).toString('hex')).toBe(`${'07000000'.repeat(3)}${'0100000002000000'.repeat(2)}`)
  })

  it('takes no memory above its budget, whose check gets what is missing', () => {
    const buffer = new GrowingBuffer()
    buffer.reserve(5_000)
    buffer.length = 5_000
    const needs: number[] = []
    buffer.budget = {
      check(moreBytes) {
        needs.push(moreBytes)
        throw new RowsTooLarge()
      },
    }
    buffer.reserve(100)
    expect(() => buffer.reserve(10_000)).toThrow(RowsTooLarge)
    expect(needs).toEqual([10_000])
    expect(buffer.bytes.length).toBe(8_192)
  })

  it('shrinks when far less is used, and keeps the memory in use', () => {
    const buffer = new GrowingBuffer()
    buffer.reserve(MIB)
    const capacity = buffer.bytes.length
    for (let batch = 0; batch < 4; batch++) {
      buffer.length = 300_000
      buffer.reset()
    }
    expect(buffer.bytes.length).toBe(capacity)
    for (let batch = 0; batch < 40; batch++) buffer.reset()
    expect(buffer.bytes.length).toBe(4096)
  })
})
