import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { parseMap, UnusableMap } from './parsed-map.ts'

const LIMIT = 64 * MIB
const parse = (map: unknown, limit = LIMIT) => parseMap(JSON.stringify(map), limit)

/** One segment: the first column of the first line is line 2, column 3 of the source. */
const SIMPLE = {
  version: 3,
  sources: ['../src/a.ts'],
  sourcesContent: ['function first() {\n  throw 1\n}\n'],
  names: ['first'],
  mappings: 'AACEA',
}

describe('a source map', () => {
  it('resolves file, line, column, function and source line', () => {
    expect(parse(SIMPLE).trace({ line: 1, column: 1 })).toEqual({
      file: 'src/a.ts',
      line: 2,
      column: 3,
      function: 'first',
      name: 'first',
      sourceLine: 'throw 1',
      sourceLines: expect.objectContaining({ from: 1 }),
    })
  })

  it.each([
    [0, 1, ['a', '  b', '', 'd', 'e', 'f']],
    [1, 1, ['a', '  b', '', 'd', 'e', 'f', 'g']],
    [6, 2, ['  b', '', 'd', 'e', 'f', 'g', 'h'.repeat(200)]],
    [7, 3, ['', 'd', 'e', 'f', 'g', 'h'.repeat(200)]],
  ])('has five lines around line %i of the source', (line, from, lines) => {
    const content = ['  a', '    b', ' ', '  d\r', '  e', '  f', '  g', `  ${'h'.repeat(300)}`, ''].join('\n')
    const map = { ...SIMPLE, sourcesContent: [content], mappings: `AA${'ACEGIKMOQ'[line]}A` }
    expect(parse(map).trace({ line: 1, column: 1 })?.sourceLines).toEqual({ from, lines })
  })

  it('has no function without a source and no position without a mapping', () => {
    const { sourcesContent: _, ...bare } = SIMPLE
    expect(parse(bare).trace({ line: 1, column: 1 })).toMatchObject({ function: undefined, sourceLine: undefined })
    expect(parse(SIMPLE).trace({ line: 2, column: 1 })).toBeUndefined()
    expect(parse({ ...SIMPLE, mappings: 'A' }).trace({ line: 1, column: 1 })).toBeUndefined()
    expect(parse({ ...SIMPLE, sources: [null] }).trace({ line: 1, column: 1 })).toBeUndefined()
  })

  it('cuts the line of the source to 200 characters', () => {
    const map = parse({ ...SIMPLE, sourcesContent: [`\n  ${'x'.repeat(500)}`] })
    expect(map.trace({ line: 1, column: 1 })?.sourceLine).toBe('x'.repeat(200))
  })

  it('finds the section of a position', () => {
    const section = (line: number, column: number, source: string) => ({
      offset: { line, column },
      map: { ...SIMPLE, sources: [source] },
    })
    const map = parse({ version: 3, sections: [section(2, 0, 'c'), section(0, 0, 'a'), section(0, 10, 'b')] })
    const at = (line: number, column: number) => map.trace({ line, column })?.file
    expect([at(1, 1), at(1, 10), at(1, 11), at(1, 99), at(3, 1)]).toEqual(['a', 'a', 'b', 'b', 'c'])
    // Each maps its own first line only.
    expect([at(2, 1), at(4, 1)]).toEqual([undefined, undefined])
  })

  it('ignores sections that only have a URL or are invalid', () => {
    const sections = [
      { offset: { line: 0, column: 0 }, map: SIMPLE },
      { offset: { line: 1, column: 0 }, url: 'http://169.254.169.254/' },
      { offset: { line: 2, column: 0 }, map: { mappings: 7 } },
      { offset: { line: '3', column: 0 }, map: SIMPLE },
    ]
    const map = parse({ version: 3, sections })
    expect(map.trace({ line: 1, column: 1 })?.line).toBe(2)
    for (const line of [2, 3, 4]) expect(map.trace({ line, column: 1 })).toBeUndefined()
  })

  it('is unusable if it is invalid, nested too deep, or too large in memory', () => {
    const nested = (depth: number): unknown =>
      depth === 0 ? SIMPLE : { sections: [{ offset: { line: 0, column: 0 }, map: nested(depth - 1) }] }
    expect(parse(nested(4)).trace({ line: 1, column: 1 })?.line).toBe(2)
    expect(parse(nested(5)).trace({ line: 1, column: 1 })).toBeUndefined()
    for (const text of ['', 'nope', '7', 'null', '[]', '{}', '{"mappings":[]}', '[{}]']) {
      expect(() => parseMap(text, LIMIT)).toThrow(UnusableMap)
    }
    expect(() => parse({ ...SIMPLE, mappings: ','.repeat(MIB) })).toThrow(UnusableMap)
    expect(() => parse({ ...SIMPLE, sourcesContent: ['x'.repeat(LIMIT / 2)] })).toThrow(UnusableMap)
    expect(() => parse({ ...SIMPLE, sources: Array(1e7).fill(0) })).toThrow(UnusableMap)
  })

  it('either traces or is unusable for any content', () => {
    const value = fc.jsonValue({ maxDepth: 3 })
    const mappings = fc.stringMatching(/^[A-Za-z0-9+/,;]{0,60}$/)
    const hostile = fc.record(
      {
        version: fc.oneof(fc.constant(3), value),
        sources: fc.oneof(fc.array(fc.string()), value),
        sourcesContent: fc.oneof(fc.array(fc.string()), value),
        names: fc.oneof(fc.array(fc.string()), value),
        sourceRoot: fc.oneof(fc.string(), value),
        mappings: fc.oneof(mappings, value),
        sections: value,
      },
      { requiredKeys: ['mappings'] },
    )
    const position = fc.record({ line: fc.integer({ min: 1, max: 9 }), column: fc.integer({ min: 1, max: 99 }) })
    fc.assert(
      fc.property(hostile, position, (map, at) => {
        try {
          const original = parse(map).trace(at)
          if (original !== undefined) expect(original.line).toBeGreaterThan(0)
        } catch (error) {
          expect(error).toBeInstanceOf(UnusableMap)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
