import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { sourceMapFault } from './store-single.ts'

const faultOf = (value: unknown) =>
  sourceMapFault(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))

it.each([
  ['a map', { version: 3, sources: ['a.ts'], names: [], mappings: 'AAAA' }],
  ['a map with empty mappings', { version: 3, sources: [], names: [], mappings: '' }],
  ['an index map', { version: 3, sections: [{ offset: { line: 0, column: 0 }, map: { version: 3, mappings: '' } }] }],
  ['a map on several lines', JSON.stringify({ version: 3, mappings: '' }, null, 2)],
  ['a map after a byte order mark and a guard', '\ufeff)]}\'\n{"version":3,"mappings":""}'],
  ['version 3.0', '{"version":3.0,"mappings":""}'],
])('accepts %s', async (_name, value) => expect(await faultOf(value)).toBeUndefined())

it.each([
  ['text', 'not a map', 'is not JSON'],
  ['a guard without a line', ')]}\'{"version":3,"mappings":""}', 'is not JSON'],
  ['an empty body', '', 'is not JSON'],
  ['a truncated map', '{"version":3,"mappings":"AA', 'is not JSON'],
  ['an array', [{ version: 3, mappings: '' }], /version/],
  ['another version', { version: 2, mappings: '' }, /version/],
  ['a version that is a string', { version: '3', mappings: '' }, /version/],
  ['a map without mappings', { version: 3, sources: [] }, /mappings/],
  ['mappings that are not a string', { version: 3, mappings: [] }, /mappings/],
  ['sections that are not an array', { version: 3, sections: {} }, /mappings/],
  ['mappings of a nested object', { version: 3, file: { mappings: '' } }, /mappings/],
])('refuses %s', async (_name, value, fault) => expect(await faultOf(value)).toMatch(fault))

it('refuses 64 MiB of small values', async () => {
  const body = Buffer.from(`{"version":3,"mappings":"","x":[${'[],'.repeat(20_000_000)}1]}`)
  expect(await sourceMapFault(body)).toBe('has too many JSON values: reading it would take more than 512 MiB')
})

it('reads 64 MiB of JSON with little memory, and yields to other work', async () => {
  const body = Buffer.from(`{"version":3,"mappings":"","x":[${'"[],[],[],[],[],[],[],[]",'.repeat(2_400_000)}1]}`)
  let turns = 0
  let longestMs = 0
  let reading = true
  const others = (async () => {
    for (let last = performance.now(); reading; last = performance.now()) {
      await nextTurn()
      turns++
      longestMs = Math.max(longestMs, performance.now() - last)
    }
  })()
  const before = process.memoryUsage().heapUsed
  expect(await sourceMapFault(body)).toBeUndefined()
  const grown = process.memoryUsage().heapUsed - before
  reading = false
  await others
  expect(grown).toBeLessThan(50 * MIB)
  expect(turns).toBeGreaterThan(300)
  expect(longestMs).toBeLessThan(500)
})
