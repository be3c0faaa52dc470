import fc from 'fast-check'
import { expect, it } from 'vitest'
import { DANGLING, ROOT } from './choose-spans.ts'
import { TraceSkeleton } from './trace-skeleton.ts'

interface Head {
  readonly parentSpanId: bigint
  readonly start: bigint
  readonly end: bigint
  readonly receivedAt: bigint
  readonly digest: bigint
}

/** Adds a row. `row` is where its head is in a larger view. */
function add(skeleton: TraceSkeleton, spanId: bigint, change: Partial<Head> = {}, row = 0): void {
  const defaults = { parentSpanId: 0n, start: 100n, end: 200n, receivedAt: 1n, digest: 1n }
  const { parentSpanId, start, end, receivedAt, digest } = { ...defaults, ...change }
  const view = new DataView(new ArrayBuffer(row + 48))
  view.setBigUint64(row, spanId)
  view.setBigUint64(row + 8, parentSpanId)
  view.setBigUint64(row + 16, start, true)
  view.setBigUint64(row + 24, end, true)
  view.setBigUint64(row + 32, receivedAt, true)
  view.setBigUint64(row + 40, digest, true)
  skeleton.add(view, row)
}

it('sorts spans by start and id, and refers to parents by their index', () => {
  const skeleton = new TraceSkeleton(1_024)
  add(skeleton, 3n, { parentSpanId: 1n, start: 90n })
  add(skeleton, 2n, { parentSpanId: 77n, end: 300n })
  add(skeleton, 1n)
  const trace = skeleton.arrange()
  expect([...trace.numbers].map(number => skeleton.spanId(number))).toEqual(
    ['3', '1', '2'].map(id => id.padStart(16, '0')),
  )
  expect([...trace.parents]).toEqual([1, ROOT, DANGLING])
  expect(trace).toMatchObject({
    rootCount: 1,
    danglingParentCount: 1,
    startedAtUnixNano: 90n,
    endedAtUnixNano: 300n,
  })
})

it('compares times and ids by all of their 64 bits', () => {
  const skeleton = new TraceSkeleton(1_024)
  const large = 2n ** 63n
  add(skeleton, large + 1n, { start: large, end: 0n })
  add(skeleton, large, { start: large, end: 2n ** 32n })
  add(skeleton, 5n, { start: 2n ** 32n, end: large - 1n })
  add(skeleton, 6n, { start: 2n ** 32n - 1n })
  const trace = skeleton.arrange()
  const ids = [...trace.numbers].map(number => BigInt(`0x${skeleton.spanId(number)}`))
  expect(ids).toEqual([6n, 5n, large, large + 1n])
  expect(trace).toMatchObject({ startedAtUnixNano: 2n ** 32n - 1n, endedAtUnixNano: large })
})

it('shows the row of each span that was received first, in whatever order the rows arrive', () => {
  const ids = fc.bigInt({ min: 1n, max: 40n })
  const times = fc.oneof(fc.bigInt({ min: 0n, max: 5n }), fc.constantFrom(2n ** 32n, 2n ** 32n + 1n))
  const rows = fc.array(fc.record({ id: ids, at: times, digest: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }), {
    maxLength: 200,
  })
  fc.assert(
    fc.property(rows, received => {
      const skeleton = new TraceSkeleton(1_024)
      for (const [row, { id, at, digest }] of received.entries()) {
        add(skeleton, id, { receivedAt: at, digest }, row)
      }
      expect(skeleton.size).toBe(new Set(received.map(({ id }) => id)).size)
      const { numbers } = skeleton.arrange()
      for (const number of numbers) {
        const id = BigInt(`0x${skeleton.spanId(number)}`)
        const copies = received.filter(copy => copy.id === id)
        expect(skeleton.occurrences(number)).toBe(copies.length)
        const first = copies.reduce((a, b) => (b.at < a.at || (b.at === a.at && b.digest < a.digest) ? b : a))
        expect(received[skeleton.rowOf(number)]).toEqual(first)
      }
    }),
  )
})

it('keeps 50,000 ids apart, up to the largest', () => {
  const skeleton = new TraceSkeleton(1_024)
  const ids = Array.from({ length: 50_000 }, (_, i) => (i % 2 === 0 ? BigInt(i) << 32n : 2n ** 64n - 1n - BigInt(i)))
  for (const id of [...ids, ...ids]) add(skeleton, id, { parentSpanId: 2n ** 64n - 2n })
  expect(skeleton.size).toBe(50_000)
  expect(skeleton.arrange()).toMatchObject({ rootCount: 0, danglingParentCount: 0 })
  expect(skeleton.occurrences(49_999)).toBe(2)
})
