import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { GIB, HOUR_MS, KIB, MIB, MINUTE_MS } from '../../../schemas/units.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { until } from '../../../test/support/until.ts'
import type { MapGuards } from './map-guards.ts'
import { createMapTracer, type MapTracer, type MapTracerOptions } from './map-tracer.ts'

const POSITION = [{ line: 1, column: 1 }]
const logger = pino({ level: 'silent' })

/** The map of a source whose second line throws in a function of this name. */
const mapOf = (name: string, padding = 0) =>
  mapOfSource(`function ${name}() {\n  throw 1\n}\n//${'x'.repeat(padding)}`, name)

const mapOfSource = (source: string, name = 'f') =>
  JSON.stringify({ version: 3, sources: [`${name}.ts`], sourcesContent: [source], names: [], mappings: 'AACE' })

/** A map that passes the estimate and takes more memory than its process has. */
const killer = () => JSON.stringify({ version: 3, sources: Array(1_000_000).fill([[]]), mappings: 'AAAA' })

/** A map of a source with this many lines, which are counted for each position, one by one. */
const slowMap = (lines: number) =>
  JSON.stringify({
    ...{ version: 3, sources: ['slow.ts'], names: [], mappings: 'AA4/////BA' },
    sourcesContent: [lines === 1 ? 'LINES' : '\n'.repeat(lines)],
  })

const opened: MapTracer[] = []

afterEach(async () => {
  for (const tracer of opened.splice(0)) await tracer.close()
})

/** Remembers guards in this process, as Redis does for all workers. */
function createGuards(): MapGuards & { readonly log: string[]; readonly known: Map<string, 'busy' | 'unusable'> } {
  const known = new Map<string, 'busy' | 'unusable'>()
  const log: string[] = []
  return {
    known,
    log,
    async enter(mapKey) {
      log.push(`enter ${mapKey}`)
      const state = known.get(mapKey)
      if (state === undefined) known.set(mapKey, 'busy')
      return state ?? 'entered'
    },
    async leave(mapKey) {
      log.push(`leave ${mapKey}`)
      known.delete(mapKey)
    },
    async condemn(mapKey) {
      log.push(`condemn ${mapKey}`)
      known.set(mapKey, 'unusable')
    },
  }
}

function start(maps: Record<string, string>, options: Partial<MapTracerOptions> = {}, now = Date.now) {
  const fetched: string[] = []
  const guards = createGuards()
  async function openMap(mapKey: string) {
    fetched.push(mapKey)
    const bytes = maps[mapKey] === undefined ? undefined : Buffer.from(maps[mapKey])
    return bytes && { size: bytes.length, body: Readable.from(piecesOf(bytes)) }
  }
  const limits = { heapBytes: 256 * MIB, cacheBytes: 8 * MIB, ...options }
  const tracer = createMapTracer({ openMap, guards, logger, now }, limits)
  opened.push(tracer)
  const trace = async (mapKey: string, workspaceId = 'ws_1') =>
    (await tracer.trace({ workspaceId, mapKey }, POSITION))?.[0]
  const sourceOf = async (mapKey: string, workspaceId = 'ws_1') => (await trace(mapKey, workspaceId))?.file.slice(0, -3)
  return { tracer, trace, sourceOf, fetched, guards }
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 64 * KIB) yield bytes.subarray(at, at + 64 * KIB)
}

describe('a tracer of source maps', () => {
  it('fetches a map once, and again after it was evicted', async () => {
    const maps = Object.fromEntries(['a', 'b', 'c'].map(name => [name, mapOf(name, 2 * MIB)]))
    // A padding of 2 MiB takes 4 by the estimate: two of them are kept.
    const { sourceOf, fetched } = start(maps, { cacheBytes: 10 * MIB })
    for (const name of ['a', 'a', 'b', 'a', 'c', 'a', 'b']) expect(await sourceOf(name)).toBe(name)
    expect(fetched).toEqual(['a', 'b', 'c', 'b'])
  })

  it('reads a map after a byte order mark and a guard', async () => {
    const { sourceOf } = start({ marked: `\ufeff)]}'\n${mapOf('marked')}`, unmarked: `)]}${mapOf('unmarked')}` })
    expect(await sourceOf('marked')).toBe('marked')
    expect(await sourceOf('unmarked')).toBeUndefined()
  })

  it('resolves nothing through a missing, empty or invalid map, and does not fetch an invalid map again', async () => {
    const { sourceOf, fetched, guards } = start({ none: 'nope', empty: '', ok: mapOf('ok') })
    for (const name of ['gone', 'none', 'none', 'empty']) expect(await sourceOf(name)).toBeUndefined()
    expect(await sourceOf('ok')).toBe('ok')
    expect(fetched).toEqual(['gone', 'none', 'empty', 'ok'])
    expect([...guards.known]).toEqual([
      ['none', 'unusable'],
      ['empty', 'unusable'],
    ])
  })

  it('passes on an error of the store, also within the bytes, and continues', async () => {
    const broken = new TransientError('the store is unavailable')
    const bytes = Buffer.from(mapOf('ok', MIB / 2))
    let attempt = 0
    const openMap = async () => {
      if (++attempt === 1) throw broken
      async function* cut() {
        yield bytes.subarray(0, 1_000)
        throw broken
      }
      return { size: bytes.length, body: Readable.from(attempt === 2 ? cut() : piecesOf(bytes)) }
    }
    const guards = createGuards()
    const tracer = createMapTracer({ openMap, guards, logger }, { cacheBytes: MIB, heapBytes: 256 * MIB })
    opened.push(tracer)
    const map = { workspaceId: 'ws_1', mapKey: 'ok' }
    for (let i = 0; i < 2; i++) await expect(tracer.trace(map, POSITION)).rejects.toBe(broken)
    expect([...guards.known]).toEqual([])
    expect((await tracer.trace(map, POSITION))?.[0]?.function).toBe('ok')
    await tracer.close()
    await expect(tracer.trace(map, POSITION)).rejects.toThrow(TransientError)
  })
})

describe('a map that costs too much', () => {
  it.runIf(process.platform === 'linux')(
    'is refused before it is parsed, and its workspace and the process continue',
    async () => {
      const bomb = `{"version":3,"mappings":"AAAA","sources":[${'{},'.repeat(21 * MIB)}{}]}`
      const { tracer, sourceOf } = start({ bomb, ok: mapOf('ok') }, { heapBytes: 1_152 * MIB })
      expect(await sourceOf('ok')).toBe('ok')
      const { pid } = tracer
      const before = residentMib(pid)
      let most = before
      const timer = setInterval(() => (most = Math.max(most, residentMib(pid))), 5)
      expect(await sourceOf('bomb')).toBeUndefined()
      clearInterval(timer)
      expect(await sourceOf('ok')).toBe('ok')
      expect(tracer.pid).toBe(pid)
      // Its bytes, as far as they were read.
      expect(most - before).toBeLessThan(100)
    },
  )

  it('ends only its process, and is retried only after ten minutes', async () => {
    let nowMs = 1
    const maps = { killer: killer(), ok: mapOf('ok') }
    const limits = { mapLimitBytes: GIB, heapBytes: 40 * MIB }
    const { sourceOf, fetched, guards } = start(maps, limits, () => nowMs)
    const found = await Promise.all(['ok', 'killer', 'ok', 'killer'].map(name => sourceOf(name)))
    expect(found).toEqual(['ok', undefined, 'ok', undefined])
    expect(guards.known.get('killer')).toBe('unusable')
    expect(fetched.filter(key => key === 'killer')).toHaveLength(1)
    expect(await sourceOf('killer')).toBeUndefined()
    expect(fetched.filter(key => key === 'killer')).toHaveLength(1)
    nowMs += 10 * MINUTE_MS
    guards.known.clear()
    expect(await sourceOf('killer')).toBeUndefined()
    expect(fetched.filter(key => key === 'killer')).toHaveLength(2)
    expect(await sourceOf('ok')).toBe('ok')
  })

  it('is marked before it is read, and the mark is removed when it could be parsed', async () => {
    const { sourceOf, guards } = start({ ok: mapOf('ok'), none: 'nope' })
    await sourceOf('ok')
    await sourceOf('ok')
    await sourceOf('none')
    expect(guards.log).toEqual(['enter ok', 'leave ok', 'enter none', 'condemn none'])
  })

  it('is not read by another worker while it is parsed, nor after it was found unusable', async () => {
    const { sourceOf, fetched, guards } = start({ a: mapOf('a'), b: mapOf('b') })
    guards.known.set('a', 'busy').set('b', 'unusable')
    await expect(sourceOf('a')).rejects.toThrow(TransientError)
    expect(await sourceOf('b')).toBeUndefined()
    expect(fetched).toEqual([])
    guards.known.delete('a')
    expect(await sourceOf('a')).toBe('a')
  })

  it('that takes too long ends with its process', async () => {
    const slow = slowMap(40 * MIB)
    const { tracer, sourceOf } = start({ slow, ok: mapOf('ok') }, { deadlineMs: 1_500, heapBytes: 512 * MIB })
    expect(await sourceOf('ok')).toBe('ok')
    const { pid } = tracer
    const asked = await tracer.trace({ workspaceId: 'ws_1', mapKey: 'slow' }, Array(200).fill(POSITION[0]))
    expect(asked).toBeUndefined()
    expect(isRunning(pid)).toBe(false)
    expect(await sourceOf('ok')).toBe('ok')
  })
})

describe('a source that is slow to parse', () => {
  it('leaves frames without the name of their function, and keeps the process', async () => {
    const source = `first()\nfunction slow() {\n${'a(b=>(c,d=(e)=>{'.repeat(30_000)}`
    const { tracer, trace } = start({ slow: mapOfSource(source), ok: mapOf('ok') }, { indexingLimitMs: 1 })
    await trace('ok')
    const { pid } = tracer
    expect(await trace('slow')).toMatchObject({
      file: 'f.ts',
      line: 2,
      function: undefined,
      sourceLine: 'function slow() {',
    })
    expect(tracer.pid).toBe(pid)
  })
})

describe('the time of the process', () => {
  it('goes to workspaces in turns', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const { sourceOf } = start(Object.fromEntries([...names, 'x'].map(name => [name, mapOf(name)])))
    const order: string[] = []
    const ask = async (name: string, workspaceId: string) => order.push(String(await sourceOf(name, workspaceId)))
    await Promise.all([...names.map(name => ask(name, 'ws_1')), ask('x', 'ws_2')])
    expect(order.indexOf('x')).toBe(1)
  })

  it('is a budget for each workspace', async () => {
    let nowMs = 0
    const { tracer, sourceOf } = start({ a: mapOf('a') }, { msPerMinute: 1 }, () => nowMs)
    expect(tracer.hasTime('ws_1')).toBe(true)
    await sourceOf('a')
    expect(tracer.hasTime('ws_1')).toBe(false)
    expect(tracer.hasTime('ws_2')).toBe(true)
    nowMs = HOUR_MS * 100
    expect(tracer.hasTime('ws_1')).toBe(true)
  })
})

it('ends with its worker, even if it is busy when the worker is killed', async () => {
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const script = `
    import { Readable } from 'node:stream'
    import { createMapTracer } from ${url('./map-tracer.ts')}
    const bytes = Buffer.from(${JSON.stringify(slowMap(1))}.replace('LINES', '\\\\n'.repeat(20e6)))
    const openMap = async () => ({ size: bytes.length, body: Readable.from([bytes]) })
    const guards = { enter: async () => 'entered', leave: async () => {}, condemn: async () => {} }
    const tracer = createMapTracer({ openMap, guards, logger: console }, { heapBytes: 2 ** 29, cacheBytes: 2 ** 20 })
    const positions = n => Array(n).fill({ line: 1, column: 1 })
    const map = { workspaceId: 'ws_1', mapKey: 'slow' }
    await tracer.trace(map, positions(1))
    void tracer.trace(map, positions(10_000))
    setTimeout(() => console.log(tracer.pid), 100)`
  const worker = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(worker.stdout, 'data')) as [Buffer]
  const pid = Number(line)
  expect(isRunning(pid)).toBe(true)
  worker.kill('SIGKILL')
  await until('the process of the tracer has ended', () => !isRunning(pid))
})

function residentMib(pid: number | undefined): number {
  const [, kib = 0] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / KIB
}

function isRunning(pid: number | undefined): boolean {
  try {
    return process.kill(pid as number, 0)
  } catch {
    return false
  }
}
