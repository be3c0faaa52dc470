import { once } from 'node:events'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StreamedObject } from '../../shared/object-store/types.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { mergeEvents } from './merge-events.ts'
import type { ChunkRef } from './open-chunk.ts'

const MIB = 1024 * 1024

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
      { objectMode: false, highWaterMark: 64 * 1024 },
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
  for (let at = 0; at < body.length; at += 16 * 1024) yield body.subarray(at, at + 16 * 1024)
}

const lineOf = (timestamp: number, mark: string) => JSON.stringify({ type: 3, data: { mark }, timestamp })

async function* refsOf(chunks: readonly Chunk[]) {
  for (const { ref } of [...chunks].sort((a, b) => a.ref.firstEventMs - b.ref.firstEventMs)) yield ref
}

function read(
  chunks: readonly Chunk[],
  options: { openMax?: number; heldLimitBytes?: number; onCrowded?: () => void } = {},
) {
  const store = storeOf(chunks)
  const events = mergeEvents(store, refsOf(chunks), {
    openMax: 16,
    heldLimitBytes: 64 * MIB,
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
    expect(counters.openMax).toBe(2)
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
    const events = mergeEvents(store, refsOf([whole, broken]), { openMax: 4, heldLimitBytes: MIB, onCrowded: () => {} })
    expect((await events.next()).value?.length).toBeGreaterThan(60_000)
    await expect(linesOf(events)).rejects.toThrow(PermanentError)
    expect(store.counters.open).toBe(0)
  })

  it('end the stream when their events exceed the limit of buffered bytes', async () => {
    const { events, counters } = read([chunkOf('w', 0, [lineOf(0, 'x'.repeat(2 * MIB))], 0)], { heldLimitBytes: MIB })
    await expect(linesOf(events)).rejects.toThrow(/buffer more than 1048576 bytes/)
    await new Promise(resolve => setImmediate(resolve))
    expect(counters.open).toBe(0)
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
