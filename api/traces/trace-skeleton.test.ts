import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { SkeletonRow } from '../../clickhouse/queries/traces/select-trace-skeleton.ts'
import { DANGLING, ROOT } from './choose-spans.ts'
import { TraceSkeleton } from './trace-skeleton.ts'

function row(spanId: bigint, change: Partial<SkeletonRow> = {}): SkeletonRow {
  return {
    spanId,
    parentSpanId: 0n,
    startTimeUnixNano: 100n,
    endTimeUnixNano: 200n,
    receivedAtUnixMs: 1n,
    digest: 1n,
    isError: false,
    textBytes: 10,
    ...change,
  }
}

it('sorts spans by start and id, and refers to parents by their index', () => {
  const skeleton = new TraceSkeleton()
  skeleton.add(row(3n, { parentSpanId: 1n, startTimeUnixNano: 90n, isError: true }))
  skeleton.add(row(2n, { parentSpanId: 77n, endTimeUnixNano: 300n }))
  skeleton.add(row(1n))
  const trace = skeleton.arrange()
  expect([...trace.numbers].map(number => skeleton.spanId(number))).toEqual(
    ['3', '1', '2'].map(id => id.padStart(16, '0')),
  )
  expect([...trace.shape.parents]).toEqual([1, ROOT, DANGLING])
  expect([...trace.shape.isError]).toEqual([1, 0, 0])
  expect(trace).toMatchObject({
    rootCount: 1,
    danglingParentCount: 1,
    startedAtUnixNano: 90n,
    endedAtUnixNano: 300n,
  })
})

it('shows the row of each span that was received first, in whatever order the rows arrive', () => {
  const ids = fc.bigInt({ min: 1n, max: 40n })
  const rows = fc.array(
    fc.record({ id: ids, at: fc.bigInt({ min: 0n, max: 5n }), digest: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
    { maxLength: 200 },
  )
  fc.assert(
    fc.property(rows, received => {
      const skeleton = new TraceSkeleton()
      const shown = new Map<bigint, { at: bigint; digest: bigint }>()
      for (const { id, at, digest } of received) {
        if (skeleton.add(row(id, { receivedAtUnixMs: at, digest })).isShown) shown.set(id, { at, digest })
      }
      expect(skeleton.size).toBe(shown.size)
      const { numbers } = skeleton.arrange()
      for (const number of numbers) {
        const id = BigInt(`0x${skeleton.spanId(number)}`)
        const copies = received.filter(copy => copy.id === id)
        expect(skeleton.occurrences(number)).toBe(copies.length)
        const first = copies.reduce((a, b) => (b.at < a.at || (b.at === a.at && b.digest < a.digest) ? b : a))
        expect(shown.get(id)).toEqual({ at: first.at, digest: first.digest })
      }
    }),
  )
})

it('keeps 50,000 ids apart, up to the largest', () => {
  const skeleton = new TraceSkeleton()
  const ids = Array.from({ length: 50_000 }, (_, i) => (i % 2 === 0 ? BigInt(i) << 32n : 2n ** 64n - 1n - BigInt(i)))
  for (const id of [...ids, ...ids]) skeleton.add(row(id, { parentSpanId: 2n ** 64n - 2n }))
  expect(skeleton.size).toBe(50_000)
  expect(skeleton.arrange()).toMatchObject({ rootCount: 0, danglingParentCount: 0 })
  expect(skeleton.occurrences(49_999)).toBe(2)
})
