import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { protobufFault } from './protobuf-framing.ts'

const field = fc.oneof(
  fc.record({ no: fc.integer({ min: 1, max: 2 ** 29 - 1 }), bytes: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({ no: fc.integer({ min: 1, max: 2 ** 29 - 1 }), varint: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
  fc.record({ no: fc.integer({ min: 1, max: 2 ** 29 - 1 }), fixed64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
  fc.record({ no: fc.integer({ min: 1, max: 2 ** 29 - 1 }), fixed32: fc.nat() }),
)

const message = fc.array(field, { maxLength: 8 }).map(fields => {
  const writer = new BinaryWriter()
  for (const part of fields) {
    if ('bytes' in part) writer.tag(part.no, WireType.LengthDelimited).bytes(part.bytes)
    else if ('varint' in part) writer.tag(part.no, WireType.Varint).uint64(part.varint)
    else if ('fixed64' in part) writer.tag(part.no, WireType.Bit64).fixed64(part.fixed64)
    else writer.tag(part.no, WireType.Bit32).fixed32(part.fixed32)
  }
  return { fields, bytes: Buffer.from(writer.finish()) }
})

it('accepts every sequence of whole fields', () => {
  fc.assert(
    fc.property(message, ({ bytes }) => {
      expect(protobufFault(bytes)).toBeUndefined()
    }),
  )
})

it('refuses a message whose last field is cut short', () => {
  fc.assert(
    fc.property(message, fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.nat(), (before, bytes, cut) => {
      const last = Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(bytes).finish())
      const kept = 1 + (cut % (last.length - 1))
      expect(protobufFault(Buffer.concat([before.bytes, last.subarray(0, kept)]))).toMatch(/not a protobuf message/)
    }),
  )
})

it('refuses groups, field number zero, over-long varints and text', () => {
  for (const bytes of [[0x0b], [0x0c], [0x02, 0x00], Array(11).fill(0x80), [...Buffer.from('{"resourceSpans":[]}')]]) {
    expect(protobufFault(Buffer.from(bytes))).toMatch(/not a protobuf message/)
  }
})

it('looks at no more than 100,000 fields', () => {
  const fields = (count: number) => Buffer.alloc(2 * count, Buffer.from([0x0a, 0x00]))
  expect(protobufFault(fields(100_000))).toBeUndefined()
  expect(protobufFault(fields(100_001))).toMatch(/too many resources/)
  const shortestMs = (body: Buffer) =>
    Math.min(
      ...Array.from({ length: 5 }, () => {
        const before = performance.now()
        expect(protobufFault(body)).toMatch(/too many resources/)
        return performance.now() - before
      }),
    )
  // All of the longer body would take a hundred times as long.
  expect(shortestMs(fields(10_000_000))).toBeLessThan(20 * shortestMs(fields(100_001)))
})
