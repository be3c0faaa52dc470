import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digestedText, missingParts, parsePartClaims } from './part-claims.ts'

const digested = (n: number) => ({ sha256: n.toString(16).padStart(64, '0'), size: n + 1 })

it('returns the missing numbers, in whatever order the parts were claimed', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(40), { minLength: 1 }), numbers => {
      const last = Math.max(...numbers)
      const missing = Array.from({ length: last }, (_, n) => n).filter(n => !numbers.includes(n))
      const fields = Object.fromEntries(numbers.map(n => [String(n), digestedText(digested(n))]))
      const claims = parsePartClaims({ ...fields, bytes: '123' })
      expect(claims?.parts.map(({ part }) => part)).toEqual([...numbers].sort((a, b) => a - b))
      expect(missingParts(claims?.parts ?? [], 100)).toEqual(missing)
      expect(missingParts(claims?.parts ?? [])).toEqual(missing.slice(0, 10))
    }),
  )
})

it('returns which parts are stored', () => {
  const fields = { 0: digestedText(digested(0)), 1: digestedText(digested(1)), 'stored:1': '1', bytes: '3' }
  expect(parsePartClaims(fields)?.parts).toEqual([
    { part: 0, stored: false, ...digested(0) },
    { part: 1, stored: true, ...digested(1) },
  ])
})

describe('the assembled map', () => {
  const fields = { 0: digestedText(digested(0)), 1: digestedText(digested(1)) }
  it.each([
    ['counts if it is of all the parts', `2:${digestedText(digested(7))}`, digested(7)],
    ['does not count if another part was claimed since', `1:${digestedText(digested(7))}`, undefined],
    ['does not count if its record is invalid', '2:beef', undefined],
  ])('%s', (_name, assembled, expected) => {
    expect(parsePartClaims({ ...fields, assembled })?.assembled).toEqual(expected)
  })

  it('does not count if a part is missing', () => {
    const gap = { 0: digestedText(digested(0)), 2: digestedText(digested(1)) }
    expect(parsePartClaims({ ...gap, assembled: `2:${digestedText(digested(7))}` })?.assembled).toBeUndefined()
  })
})

it('is absent if no part is claimed', () => {
  expect(parsePartClaims({})).toBeUndefined()
  expect(parsePartClaims({ bytes: '0', sealed: '5' })).toBeUndefined()
})
