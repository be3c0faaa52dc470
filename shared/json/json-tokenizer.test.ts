import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonTokenizer, type TokenizerOptions, type ValueKind } from './json-tokenizer.ts'

const OPTIONS = { maxDepth: 1_000, reportDepth: 1, names: ['name', 'tëxt', 'qu"ote'] }

/** Records the members of the outermost object as [index of the name, kind, text]. */
class Recorder extends JsonTokenizer {
  readonly members: [name: number, kind: ValueKind, text: string][] = []
  readonly numbers: (number | undefined)[] = []
  readonly #text: Buffer

  constructor(text: Buffer, options: Partial<TokenizerOptions> = {}) {
    super({ ...OPTIONS, ...options })
    this.#text = text
  }

  protected override onValueEnd(kind: ValueKind, start: number, end: number): void {
    if (this.depth === 1) this.members.push([this.name, kind, this.#text.toString('utf8', start, end)])
    if (kind === 'number') this.numbers.push(this.numberValue())
  }
}

/** Adds the text in chunks of the given sizes, over and over. */
function read(text: string | Buffer, chunkSizes: readonly number[], options: Partial<TokenizerOptions> = {}) {
  const bytes = Buffer.from(text as string)
  const recorder = new Recorder(bytes, options)
  let isValid = true
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = chunkSizes[i % chunkSizes.length] as number
    isValid = recorder.add(bytes.subarray(at, at + size)) && isValid
    at += size
  }
  return { isValid: recorder.end() && isValid, recorder }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const kindOf = (value: unknown): ValueKind => {
  if (typeof value === 'string' || typeof value === 'number') return typeof value as ValueKind
  if (Array.isArray(value)) return 'array'
  return typeof value === 'object' && value !== null ? 'object' : 'literal'
}

const chunkSizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
const key = fc.oneof(fc.constantFrom('name', 'tëxt', 'qu"ote', ''), fc.string({ unit: 'grapheme' }))
const document = fc.oneof(fc.jsonValue({ maxDepth: 4 }), fc.dictionary(key, fc.jsonValue({ maxDepth: 2 })))
const text = fc
  .tuple(document, fc.constantFrom(undefined, 2, '\t'))
  .map(([v, indent]) => JSON.stringify(v, null, indent))

describe('agrees with JSON.parse', () => {
  it('on random documents, wherever chunks end', () => {
    fc.assert(
      fc.property(text, chunkSizes, (json, sizes) => {
        expect(read(json, sizes).isValid).toBe(true)
        expect(read(json, sizes, { checks: 'structure' }).isValid).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it('on mutated documents, wherever chunks end', () => {
    const put = fc.constantFrom(...'{}[],:"\\/ \n\t\r012-+.eEuntrfalsé\u0000\u001f\u007f😀', '')
    const mutation = fc.record({ at: fc.nat(), remove: fc.nat(2), put })
    fc.assert(
      fc.property(text, fc.array(mutation, { minLength: 1, maxLength: 3 }), chunkSizes, (json, mutations, sizes) => {
        let mutated = json
        for (const { at, remove, put } of mutations) {
          const start = at % (mutated.length + 1)
          mutated = mutated.slice(0, start) + put + mutated.slice(start + remove)
        }
        if (mutated.isWellFormed()) expect(read(mutated, sizes).isValid, mutated).toBe(isJson(mutated))
      }),
      { numRuns: 5_000 },
    )
  })

  it('on random tokens', () => {
    const token = fc.constantFrom(
      ...'{}[],:"\\ \n012-+.eE',
      'true',
      'false',
      'null',
      '"a"',
      '"\\u00e9"',
      '1e5',
      '"é😀"',
      'x',
    )
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), chunkSizes, (tokens, sizes) => {
        const json = tokens.join('')
        expect(read(json, sizes).isValid, json).toBe(isJson(json))
      }),
      { numRuns: 5_000 },
    )
  })

  it('on strings of random bytes, with a decoder that refuses what is not UTF-8', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const isText = (bytes: Buffer) => {
      try {
        return isJson(decoder.decode(bytes))
      } catch {
        return false
      }
    }
    const byte = fc.oneof(
      fc.constantFrom(0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5),
      fc.nat(255),
    )
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 5 }), chunkSizes, (content, sizes) => {
        const bytes = Buffer.from([0x22, ...content, 0x22])
        expect(read(bytes, sizes).isValid).toBe(isText(bytes))
      }),
      { numRuns: 5_000 },
    )
  })

  it('on the members of an object, their names, kinds, positions and numbers', () => {
    const levels = fc.constantFrom('all', 'structure', 'nothing')
    const object = fc.dictionary(key, fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true })
    fc.assert(
      fc.property(object, fc.constantFrom(undefined, 1), chunkSizes, levels, (value, indent, sizes, checks) => {
        const { recorder } = read(JSON.stringify(value, null, indent), checks === 'nothing' ? [1e9] : sizes, { checks })
        const entries = Object.entries(value)
        expect(recorder.members.map(([name, kind]) => [name, kind])).toEqual(
          entries.map(([name, member]) => [OPTIONS.names.indexOf(name), kindOf(member)]),
        )
        const members = recorder.members.map(([, , member]) => JSON.stringify(JSON.parse(member)))
        expect(members).toEqual(entries.map(([, member]) => JSON.stringify(member)))
        const numbers = entries.flatMap(([, member]) => (typeof member === 'number' ? [JSON.stringify(member)] : []))
        expect(recorder.numbers.map(number => JSON.stringify(number))).toEqual(numbers)
      }),
      { numRuns: 1_000 },
    )
  })
})

it('recognizes a name that is written with escapes', () => {
  expect(read('{"n\\u0061me":1,"t\\u00ebxt":2,"namE":3}', [3]).recorder.members.map(([name]) => name)).toEqual([
    0, 1, -1,
  ])
})

it('does not confuse a long key with a wanted name', () => {
  expect(read(`{"name${' '.repeat(200)}":1}`, [7]).recorder.members[0]?.[0]).toBe(-1)
})

it('limits the depth', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(read(nested(1_000), [64]).isValid).toBe(true)
  expect(read(nested(1_001), [64]).isValid).toBe(false)
})

it('stays failed once the text is invalid', () => {
  const tokenizer = new JsonTokenizer(OPTIONS)
  expect(tokenizer.add(Buffer.from('nul!'))).toBe(false)
  expect(tokenizer.add(Buffer.from('null'))).toBe(false)
  expect(tokenizer.end()).toBe(false)
})
