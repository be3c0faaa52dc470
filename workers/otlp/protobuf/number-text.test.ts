import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { appendInt64, doubleJson, doubleText } from './number-text.ts'

function textOf(value: bigint): string {
  const buffer = new GrowingBuffer()
  const unsigned = BigInt.asUintN(64, value)
  appendInt64(buffer, Number(unsigned & 0xffff_ffffn), Number(unsigned >> 32n))
  expect(buffer.bytes[0]).toBe(buffer.length - 1)
  return buffer.bytes.toString('latin1', 1, buffer.length)
}

describe('int64 as text', () => {
  it('is exact for every value', () => {
    const edges = Array.from({ length: 64 }, (_, bit) => 2n ** BigInt(bit)).flatMap(power => [
      power - 1n,
      power,
      power + 1n,
    ])
    const tens = Array.from({ length: 19 }, (_, exponent) => 10n ** BigInt(exponent)).flatMap(ten => [ten - 1n, ten])
    const small = Array.from({ length: 1_200 }, (_, value) => BigInt(value))
    for (const value of [...edges, ...tens, ...small]) {
      for (const signed of [value, -value]) {
        const int64 = BigInt.asIntN(64, signed)
        expect(textOf(int64)).toBe(String(int64))
      }
    }
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), value => {
        expect(textOf(value)).toBe(String(value))
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('a double as text', () => {
  it('reads back as the same number', () => {
    fc.assert(
      fc.property(fc.double(), value => {
        expect(Number(doubleText(value))).toBe(value)
        if (Number.isFinite(value)) expect(JSON.parse(doubleJson(value))).toBe(value)
      }),
    )
  })

  it('stays apart from an int within JSON, and is a string where JSON has no such number', () => {
    expect([1, -0, 1e21, 0.5, NaN, -Infinity].map(doubleJson)).toEqual([
      '1.0',
      '-0.0',
      '1e+21',
      '0.5',
      '"NaN"',
      '"-Infinity"',
    ])
  })
})
