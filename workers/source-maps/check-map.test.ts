import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { sourceMapFault } from './check-map.ts'

const faultOf = (value: unknown) =>
  sourceMapFault(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))

it.each([
  ['a map', { version: 3, sources: ['a.ts'], names: [], mappings: 'AAAA' }],
  ['a map without mappings in it', { version: 3, sources: [], names: [], mappings: '' }],
  ['an index map', { version: 3, sections: [{ offset: { line: 0, column: 0 }, map: { version: 3, mappings: '' } }] }],
  ['a map that is written over lines', JSON.stringify({ version: 3, mappings: '' }, null, 2)],
  ['a version that is 3 in other words', '{"version":3.0,"mappings":""}'],
])('takes %s', async (_name, value) => expect(await faultOf(value)).toBeUndefined())

it.each([
  ['text', 'not a map', 'is not JSON'],
  ['nothing', '', 'is not JSON'],
  ['a cut map', '{"version":3,"mappings":"AA', 'is not JSON'],
  ['an array', [{ version: 3, mappings: '' }], /version/],
  ['another version', { version: 2, mappings: '' }, /version/],
  ['a version that is text', { version: '3', mappings: '' }, /version/],
  ['a map without mappings', { version: 3, sources: [] }, /mappings/],
  ['mappings that are no text', { version: 3, mappings: [] }, /mappings/],
  ['sections that are no array', { version: 3, sections: {} }, /mappings/],
  ['mappings that are not its own', { version: 3, file: { mappings: '' } }, /mappings/],
])('refuses %s', async (_name, value, fault) => expect(await faultOf(value)).toMatch(fault))

it('reads 64 MiB of hostile JSON without holding it, and lets others have their turns', async () => {
  const body = Buffer.from(`{"version":3,"mappings":"","x":[${'[],'.repeat(20_000_000)}1]}`)
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
  expect(grown).toBeLessThan(50 * 1024 * 1024)
  expect(turns).toBeGreaterThan(300)
  expect(longestMs).toBeLessThan(500)
})
