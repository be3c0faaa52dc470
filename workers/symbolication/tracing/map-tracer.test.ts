import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { createMapTracer, type MapTracer, type MapTracerOptions } from './map-tracer.ts'

const MIB = 1024 * 1024
const POSITION = [{ line: 1, column: 1 }]

/** The map of a source whose second line throws in a function of this name. */
const mapOf = (name: string, padding = 0) =>
  JSON.stringify({
    version: 3,
    sources: [`${name}.ts`],
    sourcesContent: [`function ${name}() {\n  throw 1\n}\n//${'x'.repeat(padding)}`],
    names: [],
    mappings: 'AACE',
  })

let tracer: MapTracer | undefined

afterEach(() => tracer?.close())

function start(maps: Record<string, string>, options: Partial<MapTracerOptions> = {}, now = Date.now) {
  const fetched: string[] = []
  const logger = pino({ level: 'silent' })
  const started = createMapTracer(
    {
      async fetchMap(mapKey) {
        fetched.push(mapKey)
        const map = maps[mapKey]
        return map === undefined ? undefined : Buffer.from(map)
      },
      logger,
      now,
    },
    { cacheBytes: 8 * MIB, heldBytes: 64 * MIB, ...options },
  )
  tracer = started
  const sourceOf = async (mapKey: string) => {
    const [original] = await started.trace({ mapKey, size: maps[mapKey]?.length ?? 0 }, POSITION)
    return original?.file.slice(0, -3)
  }
  return { sourceOf, fetched }
}

describe('a tracer of source maps', () => {
  it('fetches a map once, and again after it was evicted', async () => {
    const maps = Object.fromEntries(['a', 'b', 'c'].map(name => [name, mapOf(name, 2 * MIB)]))
    // A padding of 2 MiB takes 4 by the estimate: two of them are kept.
    const { sourceOf, fetched } = start(maps, { cacheBytes: 10 * MIB })
    for (const name of ['a', 'a', 'b', 'a', 'c', 'a', 'b']) expect(await sourceOf(name)).toBe(name)
    expect(fetched).toEqual(['a', 'b', 'c', 'b'])
  })

  it('resolves nothing through a missing or invalid map, and does not fetch an invalid map again', async () => {
    const { sourceOf, fetched } = start({ none: 'nope', ok: mapOf('ok') })
    expect(await sourceOf('gone')).toBeUndefined()
    expect(await sourceOf('none')).toBeUndefined()
    expect(await sourceOf('none')).toBeUndefined()
    expect(await sourceOf('ok')).toBe('ok')
    expect(fetched).toEqual(['gone', 'none', 'ok'])
  })

  it('survives a map that uses all memory of its thread, and retries it only after ten minutes', async () => {
    let nowMs = 1
    const killer = JSON.stringify({ version: 3, sources: Array(600_000).fill([[]]), mappings: 'AAAA' })
    const limits = { mapLimitBytes: 64 * MIB, heapBytes: 24 * MIB }
    const { sourceOf, fetched } = start({ killer, ok: mapOf('ok') }, limits, () => nowMs)
    expect(await Promise.all(['ok', 'killer', 'ok', 'killer'].map(sourceOf))).toEqual([
      'ok',
      undefined,
      'ok',
      undefined,
    ])
    const tries = fetched.filter(key => key === 'killer').length
    expect(await sourceOf('killer')).toBeUndefined()
    expect(fetched.filter(key => key === 'killer')).toHaveLength(tries)
    nowMs += 10 * 60_000
    expect(await sourceOf('killer')).toBeUndefined()
    expect(fetched.filter(key => key === 'killer')).toHaveLength(tries + 1)
    expect(await sourceOf('ok')).toBe('ok')
  })

  it('ends a thread that takes too long over a map', async () => {
    const { sourceOf } = start({ slow: mapOf('slow', 30 * MIB), ok: mapOf('ok') }, { deadlineMs: 1 })
    // Not even the thread starts in a millisecond.
    expect(await sourceOf('slow')).toBeUndefined()
    expect(await sourceOf('slow')).toBeUndefined()
  })

  it('passes on an error of fetching and continues', async () => {
    const broken = new TransientError('the store is unavailable')
    let isAway = true
    const logger = pino({ level: 'silent' })
    const fetchMap = async () => {
      if (isAway) throw broken
      return Buffer.from(mapOf('ok'))
    }
    const started = createMapTracer({ fetchMap, logger }, { cacheBytes: MIB, heldBytes: 10 })
    tracer = started
    await expect(started.trace({ mapKey: 'ok', size: 1_000 }, POSITION)).rejects.toBe(broken)
    isAway = false
    expect((await started.trace({ mapKey: 'ok', size: 1_000 }, POSITION))[0]?.function).toBe('ok')
    await started.close()
    await expect(started.trace({ mapKey: 'ok', size: 1_000 }, POSITION)).rejects.toThrow(TransientError)
  })
})
