import { once } from 'node:events'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { FairShares } from '../../shared/concurrency/fair-shares.ts'
import type { StreamedObject } from '../../shared/object-store/types.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { type MergeOptions, mergeEvents } from './merge-events.ts'
import type { ChunkRef } from './open-chunk.ts'

interface Chunk {
  readonly ref: ChunkRef
  readonly body: () => Iterable<Buffer>
}

/** Creates a store of these chunks that counts open streams and the bytes read from them. */
function storeOf(chunks: readonly Chunk[]) {
  const bodies = new Map(chunks.map(({ ref, body }) => [ref.objectKey, body]))
  const counters = { opened: 0, open: 0, openMax: 0, taken: 0 }
  const getStream = async (key: string): Promise<StreamedObject | undefined> => {
    const source = bodies.get(key)
    if (source === undefined) return undefined
    const body = Readable.from(
      (function* () {
        for (const piece of source()) {
          counters.taken += piece.length
          yield piece
        }
      })(),
      { objectMode: false, highWaterMark: 64 * KIB },
    )
    counters.opened++
    counters.openMax = Math.max(counters.openMax, ++counters.open)
    body.once('close', () => counters.open--)
    return { body, size: 0, contentType: 'application/gzip', metadata: {}, etag: '' }
  }
  return { getStream, counters }
}

function chunkOf(windowId: string, segment: number, lines: readonly string[], firstEventMs: number): Chunk {
  const objectKey = `${windowId}/${segment}`
  return {
    ref: { objectKey, windowId, segmentId: String(segment), segmentNumber: segment, firstEventMs },
    body: () => piecesOf(gzipSync(lines.join('\n'), { level: 0 })),
  }
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += 16 * KIB) yield body.subarray(at, at + 16 * KIB)
}

const LIMITS = { openMax: 16, openShares: new FairShares(64), owner: 'ws_1', signal: new AbortController().signal }

const lineOf = (timestamp: number, mark: string) => JSON.stringify({ type: 3, data: { mark }, timestamp })

async function* refsOf(chunks: readonly Chunk[]) {
  for (const { ref } of [...chunks].sort((a, b) => a.ref.firstEventMs - b.ref.firstEventMs)) yield ref
}

function read(chunks: readonly Chunk[], options: Partial<MergeOptions> = {}) {
  const store = storeOf(chunks)
  const events = mergeEvents(store, refsOf(chunks), {
    ...LIMITS,
    onCrowded: () => {
      throw new Error('crowded')
    },
    ...options,
  })
  return { events, counters: store.counters }
}

async function linesOf(events: AsyncIterable<Buffer>): Promise<string[]> {
  const batches: Buffer[] = []
  for await (const batch of events) batches.push(batch)
  const text = Buffer.concat(batches).toString()
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

describe('the order of events', () => {
  it('is by time over all chunks and windows, with every line as it was uploaded', async () => {
    const event = fc.record({ windowId: fc.constantFrom('a', 'b', 'c'), time: fc.integer({ min: 0, max: 200 }) })
    const input = fc.array(fc.array(event, { minLength: 1, maxLength: 30 }), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(input, async groups => {
        const chunks = groups.map((group, segment) => {
          const windowId = group[0]?.windowId ?? ''
          const lines = group.map(({ time }, i) => lineOf(time, `${windowId} ${segment} ${i}`))
          return chunkOf(windowId, segment, lines, Math.min(...group.map(({ time }) => time)))
        })
        const expected = groups
          .flatMap((group, segment) =>
            group.map(({ time }, i) => ({ time, windowId: group[0]?.windowId ?? '', segment, i })),
          )
          .sort(
            (a, b) =>
              a.time - b.time ||
              (a.windowId < b.windowId ? -1 : a.windowId > b.windowId ? 1 : 0) ||
              a.segment - b.segment ||
              a.i - b.i,
          )
          .map(({ time, windowId, segment, i }) => lineOf(time, `${windowId} ${segment} ${i}`))
        const { events, counters } = read(chunks)
        expect(await linesOf(events)).toEqual(expected)
        expect(counters.open).toBe(0)
      }),
    )
  })

  it('keeps an event without a time behind the event before it', async () => {
    const lines = [lineOf(5, 'a'), '{"type":4}', '  ', lineOf(7, 'b')]
    const { events } = read([chunkOf('w', 0, lines, 5), chunkOf('w', 1, [lineOf(6, 'c')], 6)])
    expect(await linesOf(events)).toEqual([lineOf(5, 'a'), '{"type":4}', lineOf(6, 'c'), lineOf(7, 'b')])
  })

  it('is kept as far as the open chunks allow if more chunks overlap, which is reported once', async () => {
    // The lines are larger than the buffers of streams, so that no stream is read to its end before it is closed.
    const large = 'b'.repeat(MIB)
    const linesOfWindow = (i: number) => [lineOf(i, 'a'), ...[100, 200, 300, 400].map(time => lineOf(time + i, large))]
    const chunks = Array.from({ length: 5 }, (_, i) => chunkOf(`w${i}`, 0, linesOfWindow(i), i))
    let crowded = 0
    const { events, counters } = read(chunks, { openMax: 2, onCrowded: () => crowded++ })
    expect((await linesOf(events)).sort()).toEqual(chunks.flatMap((_, i) => linesOfWindow(i)).sort())
    expect(crowded).toBe(1)
    // A chunk with long lines is read twice at the same time.
    expect(counters.openMax).toBe(4)
  })
})

describe('the chunks', () => {
  it('are opened when the merge reaches their time, and closed when they are read', async () => {
    const chunks = Array.from({ length: 300 }, (_, i) =>
      chunkOf('w', i, [lineOf(2 * i, 'a'), lineOf(2 * i + 1, 'b')], 2 * i),
    )
    const { events, counters } = read(chunks)
    expect(await linesOf(events)).toHaveLength(600)
    expect(counters).toMatchObject({ opened: 300, open: 0 })
    expect(counters.openMax).toBeLessThanOrEqual(2)
  })

  it('are closed when the reader stops early', async () => {
    const big = Array.from({ length: 30_000 }, (_, i) => lineOf(i, 'x'.repeat(100)))
    const { events, counters } = read([chunkOf('a', 0, big, 0), chunkOf('b', 0, big, 0)])
    await events.next()
    expect(counters.open).toBe(2)
    await events.return(undefined)
    await new Promise(resolve => setImmediate(resolve))
    expect(counters.open).toBe(0)
  })

  it.each<[string, Chunk['body'] | undefined]>([
    ['is missing', undefined],
    ['is not gzip', () => [Buffer.from('{}')]],
    ['is cut short', () => [gzipSync(lineOf(6, 'b').repeat(1)).subarray(0, 20)]],
  ])('end the stream when one %s, after the events before it', async (_name, body) => {
    const whole = chunkOf(
      'w',
      0,
      Array.from({ length: 2_000 }, (_, i) => lineOf(i / 1_000, 'x'.repeat(60))),
      0,
    )
    const broken = { ref: { ...whole.ref, objectKey: 'broken', firstEventMs: 6 }, body: body ?? (() => []) }
    const store = storeOf(body ? [whole, broken] : [whole])
    const events = mergeEvents(store, refsOf([whole, broken]), { ...LIMITS, onCrowded: () => {} })
    expect((await events.next()).value?.length).toBeGreaterThan(60_000)
    await expect(linesOf(events)).rejects.toThrow(PermanentError)
    expect(store.counters.open).toBe(0)
  })

  it('give back the shares of all but the first of them, however the stream ends', async () => {
    const openShares = new FairShares(64)
    const chunks = Array.from({ length: 6 }, (_, i) =>
      chunkOf(
        `w${i}`,
        0,
        Array.from({ length: 3_000 }, (_, at) => lineOf(at, 'x'.repeat(100))),
        0,
      ),
    )
    const { events } = read(chunks, { openShares })
    await events.next()
    expect(openShares.used).toBe(5)
    await events.return(undefined)
    expect(openShares.used).toBe(0)
    expect(await linesOf(read(chunks, { openShares }).events)).toHaveLength(18_000)
    expect(openShares.used).toBe(0)
  })

  it('are read one after the other when there is no share left, and none is lost', async () => {
    const openShares = new FairShares(1)
    openShares.take('another workspace', 1)
    const chunks = Array.from({ length: 4 }, (_, i) => chunkOf(`w${i}`, 0, [lineOf(i, 'a'), lineOf(i + 10, 'b')], i))
    let crowded = 0
    const { events, counters } = read(chunks, { openShares, onCrowded: () => crowded++ })
    expect(await linesOf(events)).toHaveLength(8)
    expect(crowded).toBe(1)
    expect(counters.openMax).toBe(1)
  })

  it('are closed when the reader leaves while the store is silent', async () => {
    const left = new AbortController()
    const store = storeOf([])
    const silent = new Readable({ read() {} })
    const ref = { objectKey: 'k', windowId: 'w', segmentId: '0', segmentNumber: 0, firstEventMs: 0 }
    const getStream = async () => ({ body: silent, size: 0, contentType: '', metadata: {}, etag: '' })
    async function* refs() {
      yield ref
    }
    const events = mergeEvents({ ...store, getStream }, refs(), { ...LIMITS, signal: left.signal, onCrowded: () => {} })
    const reading = linesOf(events).catch((error: unknown) => error)
    await new Promise(resolve => setImmediate(resolve))
    left.abort()
    await reading
    expect(silent.destroyed).toBe(true)
  })
})

describe('an event that is too long to be held', () => {
  const long = (timeMs: number, size: number) => lineOf(timeMs, 'l'.repeat(size))

  it('is passed on as it was uploaded, in the order of its time', async () => {
    const chunks = [
      chunkOf('a', 0, [lineOf(0, 'a'), long(20, 3 * MIB), lineOf(30, 'c'), long(50, MIB), long(70, 200_000)], 0),
      chunkOf('b', 0, [lineOf(10, 'd'), lineOf(25, 'e'), long(40, 2 * MIB), lineOf(60, 'f')], 10),
    ]
    const times = (await linesOf(read(chunks).events)).map(line => JSON.parse(line).timestamp)
    expect(times).toEqual([0, 10, 20, 25, 30, 40, 50, 60, 70])
    const lines = await linesOf(read(chunks).events)
    expect([lines[2], lines[5]]).toEqual([long(20, 3 * MIB), long(40, 2 * MIB)])
  })

  it('is left out when it is before the first time of the range', async () => {
    const lines = [lineOf(0, 'a'), long(10, MIB), lineOf(20, 'b'), long(30, MIB), lineOf(40, 'c')]
    const { events, counters } = read([chunkOf('w', 0, lines, 0)], { fromMs: 15, toMs: 40 })
    expect((await linesOf(events)).map(line => JSON.parse(line).timestamp)).toEqual([20, 30])
    expect(counters.open).toBe(0)
  })

  it('comes before shorter events that were written before it and are later', async () => {
    const { events } = read([chunkOf('w', 0, [lineOf(5, 'a'), long(4, MIB), lineOf(6, 'b')], 4)])
    expect((await linesOf(events)).map(line => JSON.parse(line).timestamp)).toEqual([4, 5, 6])
  })

  it('keeps its position if it has no time, and may be the last line without a line feed', async () => {
    const untimed = JSON.stringify({ data: 'l'.repeat(MIB) })
    const { events } = read([chunkOf('w', 0, [lineOf(5, 'a'), untimed], 5), chunkOf('x', 0, [lineOf(7, 'b')], 7)])
    expect(await linesOf(events)).toEqual([lineOf(5, 'a'), untimed, lineOf(7, 'b')])
  })

  it('is not made of white space alone', async () => {
    const blank = ' '.repeat(MIB)
    const { events } = read([chunkOf('w', 0, [lineOf(5, 'a'), blank, lineOf(6, 'b'), blank], 5)])
    expect((await linesOf(events)).map(line => line.trim())).toEqual([lineOf(5, 'a'), lineOf(6, 'b')])
  })

  it('makes its chunk be read twice, however many of them it has', async () => {
    const { events, counters } = read([
      chunkOf(
        'w',
        0,
        Array.from({ length: 20 }, (_, i) => long(i, MIB)),
        0,
      ),
    ])
    expect(await linesOf(events)).toHaveLength(20)
    expect(counters).toMatchObject({ opened: 2, open: 0 })
  })

  it('needs no more memory for 100 MiB than for one', async () => {
    const size = 100 * MIB
    const text = function* () {
      yield Buffer.from('{"data":"')
      const piece = Buffer.alloc(MIB, 'x')
      for (let at = 0; at < size; at += MIB) yield piece
      yield Buffer.from('","timestamp":5}\n')
    }
    const body = gzipSync(Buffer.concat([...text()]), { level: 1 })
    const chunk = { ...chunkOf('w', 0, [], 5), body: () => piecesOf(body) }
    const { events } = read([chunk, chunkOf('x', 0, [lineOf(4, 'a'), lineOf(6, 'b')], 4)])
    let given = 0
    let heldMax = 0
    const before = process.memoryUsage().arrayBuffers
    for await (const batch of events) {
      given += batch.length
      heldMax = Math.max(heldMax, process.memoryUsage().arrayBuffers - before)
    }
    expect(given).toBeGreaterThan(size)
    // Almost all of it waits for the garbage collector.
    expect(heldMax).toBeLessThan(64 * MIB)
  })
})

it('buffers no more of a long session than of a short one, even for a slow reader', async () => {
  // 200 MiB in two windows, as gzip without compression, so that bytes read from the store are bytes of events.
  const pieces = 100
  const text = `${Array.from({ length: 1_024 }, (_, i) => lineOf(i, 'x'.repeat(950))).join('\n')}\n`
  const body = gzipSync(text, { level: 0 })
  const chunks = Array.from({ length: 2 * pieces }, (_, i) => {
    const chunk = chunkOf(i % 2 === 0 ? 'a' : 'b', i >> 1, [], i)
    return {
      ...chunk,
      body: () => piecesOf(body),
    }
  })
  const { events, counters } = read(chunks, { onCrowded: () => {} })
  let given = 0
  let aheadMax = 0
  let heldMax = 0
  const before = process.memoryUsage().arrayBuffers
  for await (const batch of events) {
    given += batch.length
    // Waits for a turn of the event loop, in which streams would read ahead if they could.
    await once(Readable.from([0]).resume(), 'end')
    aheadMax = Math.max(aheadMax, counters.taken - given)
    heldMax = Math.max(heldMax, process.memoryUsage().arrayBuffers - before)
  }
  expect(given).toBe(2 * pieces * text.length)
  expect(given).toBeGreaterThan(190 * MIB)
  expect(aheadMax).toBeLessThan(12 * MIB)
  expect(heldMax).toBeLessThan(64 * MIB)
  expect(counters.open).toBe(0)
})
