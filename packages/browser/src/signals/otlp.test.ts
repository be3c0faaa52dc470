import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cut, keyValues, randomHex, unixNano } from './otlp.ts'

it('writes times as whole nanoseconds', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), ms => {
      const nano = unixNano(ms, performance.timeOrigin)
      expect(nano).toMatch(/^\d{19}$/)
      expect(Math.abs(Number(BigInt(nano) / 1_000n) / 1_000 - (performance.timeOrigin + ms))).toBeLessThan(0.01)
    }),
  )
})

it('keeps the type of values, and leaves out what is undefined', () => {
  expect(keyValues({ a: 'x', b: 7, c: 0.5, d: false, e: undefined, f: 2 ** 60 })).toEqual([
    { key: 'a', value: { stringValue: 'x' } },
    { key: 'b', value: { intValue: '7' } },
    { key: 'c', value: { doubleValue: 0.5 } },
    { key: 'd', value: { boolValue: false } },
    { key: 'f', value: { doubleValue: 2 ** 60 } },
  ])
})

it('bounds texts and makes ids of the wanted length', () => {
  expect(cut('x'.repeat(100_000)).length).toBeLessThanOrEqual(16_384)
  expect(randomHex(16)).toMatch(/^[0-9a-f]{32}$/)
})
