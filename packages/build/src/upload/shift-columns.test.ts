import { transform } from 'esbuild'
import fc from 'fast-check'
import { type RawSourceMap, SourceMapConsumer, SourceMapGenerator } from 'source-map-js'
import { expect, it } from 'vitest'
import { edited, scanSourceMap } from './scan-source-map.ts'
import { shiftColumns } from './shift-columns.ts'

function shift(map: object, line: number, column: number, length: number): RawSourceMap | undefined {
  const bytes = Buffer.from(JSON.stringify(map))
  const scanned = scanSourceMap(bytes)
  if (!scanned.ok) throw new Error(scanned.reason)
  const edits = shiftColumns(bytes, scanned, { line, column, length })
  return edits && JSON.parse(Buffer.concat(edited(bytes, edits)).toString())
}

const at = fc.record({
  line: fc.nat(3),
  column: fc.nat(3_000),
  original: fc.record({ line: fc.integer({ min: 1, max: 9 }), column: fc.nat(99) }),
})

function mapOf(mappings: readonly { line: number; column: number; original: { line: number; column: number } }[]) {
  const generator = new SourceMapGenerator({ file: 'a.js' })
  for (const { line, column, original } of mappings) {
    generator.addMapping({ generated: { line: line + 1, column }, original, source: 'a.ts' })
  }
  return generator.toJSON()
}

function moved(column: number, isAfter: boolean, length: number): number {
  return isAfter ? column + length : column
}

it('moves what comes after the insertion in its line, and nothing else', () => {
  const insertion = fc.record({ line: fc.nat(4), column: fc.nat(3_000), length: fc.nat(400) })
  fc.assert(
    fc.property(fc.array(at), insertion, (mappings, { line, column, length }) => {
      const expected = mappings.map(mapping => {
        const isAfter = mapping.line === line && mapping.column >= column
        return { ...mapping, column: moved(mapping.column, isAfter, length) }
      })
      expect(shift(mapOf(mappings), line, column, length)).toEqual(mapOf(expected))
    }),
  )
})

it('moves sections of an index map, and changes the section around the insertion', () => {
  const section = (line: number, column: number, mappings: string) => ({
    offset: { line, column },
    map: { version: 3, sources: ['a.ts'], names: [], mappings },
  })
  const map = {
    version: 3,
    sections: [section(0, 0, 'AAAA,UAAA'), section(0, 20, 'AAAA'), section(1, 0, 'AAAA')],
  }
  expect(shift(map, 0, 5, 100)).toEqual({
    version: 3,
    sections: [section(0, 0, 'AAAA,8GAAA'), section(0, 120, 'AAAA'), section(1, 0, 'AAAA')],
  })
  expect(shift(map, 0, 0, 1)?.mappings).toBeUndefined()
  expect(shift({ version: 3, sections: [{ url: 'a.map' }] }, 0, 0, 1)).toBeUndefined()
})

it('changes nothing in mappings that it does not understand', () => {
  expect(shift({ version: 3, mappings: '!!' }, 0, 0, 1)).toBeUndefined()
})

it('keeps the positions of minified code', async () => {
  const source = 'export function add(first, second) {\n  return first + second\n}\nexport const three = add(1, 2)\n'
  const options = { minify: true, sourcemap: 'external', sourcefile: 'a.js' } as const
  const { code, map } = await transform(source, options)
  const place = code.indexOf('return')
  const before = new SourceMapConsumer(JSON.parse(map)).originalPositionFor({ line: 1, column: place })
  expect(before.line).toBe(2)
  const shifted = shift(JSON.parse(map), 0, 0, 167)
  if (!shifted) throw new Error('it has not moved')
  expect(new SourceMapConsumer(shifted).originalPositionFor({ line: 1, column: place + 167 })).toEqual(before)
})
