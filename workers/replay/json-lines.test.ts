import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { JsonLinesScanner } from './json-lines.ts'

/** Scans the text in chunks of `pieceBytes`. */
function scan(text: string | Buffer, pieceBytes = MIB) {
  const bytes = Buffer.from(text as string)
  const scanner = new JsonLinesScanner()
  let ok = true
  for (let at = 0; at < bytes.length && ok; at += pieceBytes) ok = scanner.add(bytes.subarray(at, at + pieceBytes))
  return { ok: ok && scanner.end(), scanner }
}

/** Reads the same facts with JSON.parse; undefined if the text is invalid. */
function oracle(text: string) {
  const lines = text.split('\n').filter(line => /[^ \t\r]/.test(line))
  const events: Record<string, unknown>[] = []
  for (const line of lines) {
    try {
      const value = JSON.parse(line)
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
      events.push(value)
    } catch {
      return undefined
    }
  }
  const times = events
    .map(event => event.timestamp)
    .filter(time => typeof time === 'number' && Math.abs(time) <= 8.64e15) as number[]
  return {
    events: events.length,
    firstMs: Math.min(...times),
    lastMs: Math.max(...times),
    hasFullSnapshot: events.some(event => event.type === 2),
  }
}

describe('agrees with JSON.parse', () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  const event = fc.oneof(
    fc.record(
      {
        timestamp: fc.oneof(fc.double({ min: -1e15, max: 1e15, noNaN: true }), value),
        type: fc.oneof(fc.integer({ min: 0, max: 5 }), value),
        data: value,
      },
      { requiredKeys: [] },
    ),
    fc.dictionary(fc.constantFrom('timestamp', 'type', 'a', '"', 'ü'), value),
  )
  const blank = fc.constantFrom('', ' ', '\t', '\r')

  it('on lines of events, wherever chunks end', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(blank, fc.option(event), blank), { maxLength: 6 }),
        fc.integer({ min: 1, max: 40 }),
        (lines, pieceBytes) => {
          const text = lines.map(([a, e, b]) => a + (e === null ? '' : JSON.stringify(e)) + b).join('\n')
          const { ok, scanner } = scan(text, pieceBytes)
          expect(ok).toBe(true)
          expect(scanner).toMatchObject(oracle(text) as object)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('on lines with a character replaced, removed or inserted', () => {
    const edit = fc.record({
      at: fc.nat(),
      remove: fc.integer({ min: 0, max: 2 }),
      put: fc.constantFrom(...'{}[]",:0123.-+eE \\/untrfalse\n\t\u0000é', ''),
    })
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 3 }), edit, (events, { at, remove, put }) => {
        const text = events.map(e => JSON.stringify(e)).join('\n')
        const start = at % text.length
        const edited = text.slice(0, start) + put + text.slice(start + remove)
        if (!edited.isWellFormed()) return // cannot be sent
        const expected = oracle(edited)
        const { ok, scanner } = scan(edited, 7)
        expect(ok, edited).toBe(expected !== undefined)
        if (expected && !edited.includes('\\')) expect(scanner).toMatchObject(expected)
      }),
      { numRuns: 3_000 },
    )
  })

  it('on random tokens', () => {
    const words = [
      'true',
      'false',
      'null',
      '"a"',
      '"a":',
      '{"a":',
      '"\\u00e9"',
      '"\\\\"',
      '1e5',
      '-0',
      '"é😀"',
      '},',
      ']}',
      '}\n{',
    ]
    const token = fc.constantFrom(...'{}[],:"\\\n012-+.eE', ...words, '"__proto__":', '"\\ud800"', '\uFEFF')
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 30 }),
        fc.nat(70),
        fc.integer({ min: 1, max: 40 }),
        (tokens, shift, pieceBytes) => {
          const text = `{"a":"${'x'.repeat(shift)}"}\n{"b":${tokens.join('')}`
          expect(scan(text, pieceBytes).ok, text).toBe(oracle(text) !== undefined)
        },
      ),
      { numRuns: 10_000 },
    )
  })

  it('on random bytes within strings', () => {
    const known = [0x22, 0x5c, 0x80, 0xbf, 0xc1, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0x1f, 0x7f]
    const byte = fc.oneof(fc.constantFrom(...known), fc.nat(255))
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 8 }), fc.integer({ min: 1, max: 12 }), (bytes, pieceBytes) => {
        const text = Buffer.from([...Buffer.from('{"a":"'), ...bytes, 0x22, 0x7d])
        const expected = isUtf8(text) && oracle(text.toString()) !== undefined
        expect(scan(text, pieceBytes).ok, text.toString('hex')).toBe(expected)
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('refuses', () => {
  it.each([
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['an overlong form', Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
    ['a surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
    ['a byte order mark', Buffer.from('\uFEFF{}')],
    ['an array', '[]'],
    ['a text', '"{}"'],
    ['two objects on a line', '{}{}'],
    ['an object on two lines', '{"a":\n1}'],
    ['an object that is cut short', '{"a":1'],
    ['a line feed in a text', '{"a":"\n"}'],
    ['nesting without end', `{"a":${'['.repeat(10_000)}`],
  ])('%s', (_name, bytes) => {
    expect(scan(bytes).ok).toBe(false)
  })

  it('and names the line', () => {
    expect(scan('{}\n\n{}\nno\n{}').scanner.fault).toBe('line 4 is not a JSON object')
  })
})

it('accepts blanks wherever JSON allows them, except line breaks', () => {
  expect(scan(' { "a" : [ ] , "b" : { } ,\t"c":[ 1 , [\r] ] } ').ok).toBe(true)
  expect(scan('{"a":[ ,1]}').ok).toBe(false)
})

it('accepts objects nested as deeply as a page can be', () => {
  const depth = 9_999
  expect(scan(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`).ok).toBe(true)
})

it('counts the last of two members with the same name, and only valid times', () => {
  const lines =
    '{"timestamp":5,"timestamp":7}\n{"timestamp":8,"timestamp":"9"}\n{"timestamp":1e300}\n{"data":{"timestamp":1,"type":2}}'
  expect(scan(lines).scanner).toMatchObject({ events: 4, firstMs: 7, lastMs: 7, hasFullSnapshot: false })
})
