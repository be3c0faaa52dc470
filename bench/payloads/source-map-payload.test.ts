import { originalPositionFor, sourceContentFor, TraceMap } from '@jridgewell/trace-mapping'
import { expect, it } from 'vitest'
import { sourceMapFault } from '../../workers/source-maps/store-single.ts'
import { sourceMapPayload } from './source-map-payload.ts'

it('creates maps of the requested size whose calls exist in their sources', async () => {
  const { json, calls } = sourceMapPayload('index-1.js', 500_000)
  expect(json.length).toBeGreaterThan(480_000)
  expect(json.length).toBeLessThan(560_000)
  expect(await sourceMapFault(json)).toBeUndefined()
  const map = new TraceMap(json.toString())
  for (const { line, column, source } of calls) {
    const place = originalPositionFor(map, { line, column: column - 1 })
    expect(place.source).toBe(source)
    const text = sourceContentFor(map, source)?.split('\n')[(place.line ?? 0) - 1] ?? ''
    expect(text.slice(place.column ?? 0)).toMatch(new RegExp(`^${place.name}\\(`))
  }
  expect(calls.length).toBeGreaterThan(500)
})

it('never creates the same bytes twice', () => {
  expect(sourceMapPayload('a.js', 1_000).json.equals(sourceMapPayload('b.js', 1_000).json)).toBe(false)
})
