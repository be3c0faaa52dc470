import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { JsonScanner } from './json-scanner.ts'

function scan(text: string | Buffer, pieceBytes = MIB) {
  const bytes = Buffer.from(text as string)
  const scanner = new JsonScanner(['version', 'mappings'])
  let ok = true
  for (let at = 0; at < bytes.length && ok; at += pieceBytes) ok = scanner.add(bytes.subarray(at, at + pieceBytes))
  return { ok: ok && scanner.end(), scanner }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const kindOf = (value: unknown) => {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'number') return { number: JSON.stringify(value) }
  if (Array.isArray(value)) return 'array'
  return value === null || typeof value === 'boolean' ? 'literal' : 'object'
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, member) => sum + countValues(member), 1)
}

it('agrees with JSON.parse on documents and their members, wherever chunks end', () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  const document = fc.oneof(
    value,
    fc.record({ version: value, mappings: value, sections: value }, { requiredKeys: [] }),
    fc.dictionary(fc.constantFrom('version', 'mappings', 'a', 'ü', '"'), value),
  )
  fc.assert(
    fc.property(document, fc.nat(3), fc.integer({ min: 1, max: 40 }), (json, indent, pieceBytes) => {
      const { ok, scanner } = scan(JSON.stringify(json, null, indent), pieceBytes)
      expect(ok).toBe(true)
      expect(scanner.values).toBe(countValues(json))
      const isObject = typeof json === 'object' && json !== null && !Array.isArray(json)
      const wanted = isObject ? Object.entries(json).filter(([key]) => key === 'version' || key === 'mappings') : []
      const told = [...scanner.members].map(([key, kind]) => [
        key,
        typeof kind === 'object' ? { number: JSON.stringify(Number(kind.number)) } : kind,
      ])
      // Long numbers are not compared, because the scanner may cut their text.
      const short = wanted.filter(([, member]) => typeof member !== 'number' || String(member).length < 20)
      expect(told.filter(([key]) => short.some(([name]) => name === key)).sort()).toEqual(
        short.map(([key, member]) => [key, kindOf(member)]).sort(),
      )
    }),
    { numRuns: 500 },
  )
})

it('agrees with JSON.parse on text that is almost JSON', () => {
  const token = fc.constantFrom(...'{}[],:"\\ \n\t012-+.eE', 'true', 'null', '"a"', '"\\u00e9"', '1e5', '\u0001', 'x')
  fc.assert(
    fc.property(fc.array(token, { maxLength: 12 }), tokens => {
      const text = tokens.join('')
      expect(scan(text, 3).ok).toBe(parses(text))
    }),
    { numRuns: 3_000 },
  )
})

describe('refuses', () => {
  it.each([
    ['nothing', ''],
    ['two documents', '{} {}'],
    ['a cut one', '{"version":3,"mappings":"AAA'],
    ['a trailing comma', '{"version":3,}'],
    ['a line break in a text', '"a\nb"'],
    ['a byte order mark', '\ufeff{}'],
  ])('%s', (_name, text) => expect(scan(text).ok).toBe(false))

  it.each([
    ['a byte that is no UTF-8', [0x22, 0xff, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0x80, 0x22]],
    ['a lone surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ])('%s', (_name, bytes) => expect(scan(Buffer.from(bytes)).ok).toBe(false))

  it('excessive nesting', () => {
    expect(scan('['.repeat(999) + ']'.repeat(999)).ok).toBe(true)
    expect(scan('['.repeat(100_000)).ok).toBe(false)
  })
})

it('reads the last of two members with the same name', () => {
  expect(scan('{"version":2,"version":3}').scanner.members.get('version')).toEqual({ number: '3' })
})
