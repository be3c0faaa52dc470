import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { z } from 'zod'
import type { ApiReader } from './api-reader.ts'
import { followLogs } from './log-follower.ts'

const signal = new AbortController().signal
const BASE_MS = Date.parse('2026-11-21T10:00:00Z')
/** Most records of a page of the fake. */
const PAGE = 3

interface Arrival {
  readonly body: string
  /** Seconds. */
  readonly acceptedAt: number
  readonly storedAt: number
  /** How much earlier the clock of the edge is. */
  readonly skew: number
  /** Its own time is so much before its arrival. */
  readonly late: number
}

const arrivals: fc.Arbitrary<Arrival[]> = fc.array(
  fc
    .record({
      body: fc.constantFrom('a', 'b', 'c'),
      acceptedAt: fc.integer({ min: 0, max: 200 }),
      storing: fc.integer({ min: 0, max: 150 }),
      skew: fc.integer({ min: -29, max: 29 }),
      late: fc.integer({ min: 0, max: 60 }),
    })
    .map(({ storing, ...arrival }) => ({ ...arrival, storedAt: arrival.acceptedAt + storing })),
  { maxLength: 40 },
)

/** The API of a workspace whose records are accepted and stored at given times. */
function fakeApi(records: readonly Arrival[]) {
  let now = 0
  const iso = (seconds: number) => new Date(BASE_MS + seconds * 1_000).toISOString()
  const present = ({ body, acceptedAt, skew, late }: Arrival) => ({
    ...{ body, timestamp: iso(acceptedAt - late), receivedAt: iso(acceptedAt - skew) },
  })
  const get = async (path: string, _schema: z.ZodType) => {
    const query = new URL(path, 'http://api').searchParams
    if (path.startsWith('/v3/watermarks')) {
      const unfinished = records.filter(({ acceptedAt, storedAt }) => acceptedAt <= now && storedAt > now)
      const logs = Math.min(now, ...unfinished.map(({ acceptedAt }) => acceptedAt))
      return { readAt: iso(now), watermarks: [{ settledBefore: { logs: iso(logs) } }], nextCursor: null }
    }
    const from = query.get('receivedFrom')
    const found = records
      .filter(({ storedAt }) => storedAt <= now)
      .map(present)
      .filter(({ receivedAt }) => from === null || receivedAt >= from)
      .sort((a, b) => (a.timestamp < b.timestamp ? 1 : -1))
    const start = Number(query.get('cursor') ?? 0)
    const end = start + Math.min(PAGE, Number(query.get('limit')))
    return { logs: found.slice(start, end), nextCursor: end < found.length ? String(end) : null }
  }
  return {
    reader: { get } as unknown as ApiReader,
    at: (seconds: number) => {
      now = seconds
    },
  }
}

it('shows each record once, however late it is stored, and equal ones as often as they were received', async () => {
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 0, max: 40 }), async (records, step) => {
      const api = fakeApi(records)
      const follower = followLogs(api.reader, new URLSearchParams(), signal)
      const shown = await follower.begin(1_000)
      for (let now = 1; now <= 400; now += step + 1) {
        api.at(now)
        shown.push(...(await follower.next()))
      }
      api.at(400)
      shown.push(...(await follower.next()))
      const texts = (of: readonly { body: string }[]) => of.map(({ body }) => body).sort()
      expect(texts(shown)).toEqual(texts(records))
    }),
  )
})

it('begins with the newest, and never shows those that are older', async () => {
  const old = ['a', 'b', 'c', 'd', 'e'].map((body, i) => ({ body, acceptedAt: i, storedAt: i, skew: 0, late: 0 }))
  const api = fakeApi([...old, { body: 'f', acceptedAt: 11, storedAt: 12, skew: 0, late: 0 }])
  api.at(10)
  const follower = followLogs(api.reader, new URLSearchParams(), signal)
  expect((await follower.begin(2)).map(({ body }) => body)).toEqual(['d', 'e'])
  expect(await follower.next()).toEqual([])
  api.at(12)
  expect((await follower.next()).map(({ body }) => body)).toEqual(['f'])
})
