import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cut } from '../../../test/support/oracles/otlp-oracle.ts'
import { cutString, cutText, endOfCut, isOverlongSessionId } from './cut-text.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 60 }).map(value => value.toWellFormed())
const limit = fc.integer({ min: 0, max: 80 })

describe('a cut text', () => {
  it('is the longest start of whole characters within the limit, as text and as bytes', () => {
    fc.assert(
      fc.property(anyText, limit, (text, limitBytes) => {
        const expected = cut(text, limitBytes)
        const bytes = Buffer.from(`>${text}`)
        expect(cutString(text, limitBytes)).toBe(expected)
        expect(cutText(bytes, 1, bytes.length, limitBytes)).toBe(expected)
        expect(endOfCut(bytes, 1, bytes.length, limitBytes)).toBe(1 + Buffer.byteLength(expected))
        expect(Buffer.byteLength(expected)).toBeLessThanOrEqual(limitBytes)
        const next = [...text][[...expected].length]
        if (next !== undefined) expect(Buffer.byteLength(expected + next)).toBeGreaterThan(limitBytes)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is never longer than the limit for invalid UTF-8', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), limit, (array, limitBytes) => {
        const bytes = Buffer.from(array)
        const end = endOfCut(bytes, 0, bytes.length, limitBytes)
        expect(end).toBeLessThanOrEqual(Math.min(limitBytes, bytes.length))
      }),
    )
  })
})

it('a session id is overlong above 1,024 characters, however many bytes they have', () => {
  fc.assert(
    fc.property(fc.constantFrom('a', 'é', '日', '🚀'), fc.integer({ min: 0, max: 2_048 }), (unit, count) => {
      const bytes = Buffer.from(unit.repeat(count))
      expect(isOverlongSessionId(bytes, 0, bytes.length)).toBe(count > 1_024)
    }),
  )
})
