import { describe, expect, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { SOURCE_MAP_COST_LIMIT_BYTES, SourceMapScanner } from './source-map-scanner.ts'

function scan(text: string | Buffer, pieceBytes = 64 * KIB): SourceMapScanner {
  const bytes = Buffer.from(text as string)
  const scanner = new SourceMapScanner()
  for (let at = 0; at < bytes.length; at += pieceBytes) scanner.add(bytes.subarray(at, at + pieceBytes))
  return scanner
}

describe('the cost of a source map', () => {
  it('is over the limit for 64 MiB of small values', () => {
    for (const value of ['{},', '[],', '0,', '"",']) {
      const text = `{"version":3,"mappings":"AAAA","sources":[${value.repeat((63 * MIB) / value.length)}0]}`
      expect(scan(text, MIB).costBytes).toBeGreaterThan(SOURCE_MAP_COST_LIMIT_BYTES)
    }
  })

  it('is within the limit for the largest map of a build: 64 MiB with 20,000 sources and half a million names', () => {
    const map = {
      version: 3,
      sources: Array.from({ length: 20_000 }, (_, i) => `webpack://shop/./src/features/cart/part-${i}.tsx`),
      sourcesContent: Array.from({ length: 20_000 }, () => 'export const x = 1 // a "line"\n'.repeat(64)),
      names: Array.from({ length: 500_000 }, (_, i) => `name${i}`),
      mappings: 'AAAA,SAASA,'.repeat(1_200_000),
    }
    const text = Buffer.from(JSON.stringify(map))
    expect(text.length).toBeGreaterThan(56 * MIB)
    const scanner = scan(text)
    expect(scanner.isJson).toBe(true)
    expect(scanner.costBytes).toBeLessThan(SOURCE_MAP_COST_LIMIT_BYTES)
  })

  it.each([1, 2, 7, 1_000])(
    'counts the same values in chunks of %i bytes, with or without the line that some servers put before it',
    pieceBytes => {
      const map = '{"version":3,"sources":["a","b"],"mappings":"AAAA,\\"[[[["}'
      expect(scan(map, pieceBytes).costBytes).toBe(2 * map.length + 6 * 128)
      const prefixed = `)]}'\n${map}`
      expect(scan(prefixed, pieceBytes).costBytes).toBe(2 * prefixed.length + 6 * 128)
    },
  )

  it('of bytes that are not JSON is that of the values before the fault', () => {
    const scanner = scan(`[1,2,nope${'[],'.repeat(1_000)}`, 3)
    expect(scanner.isJson).toBe(false)
    expect(scanner.costBytes).toBeLessThan(2 * 3_100 + 5 * 128)
  })
})
