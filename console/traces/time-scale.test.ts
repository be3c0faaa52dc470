import fc from 'fast-check'
import { expect, it } from 'vitest'
import { arrange } from './span-tree.ts'
import { idleScale, linearScale } from './time-scale.ts'

/** Spans below a root that lasts for all of the time. */
function scaleOf(length: number, leaves: readonly (readonly [start: number, duration: number])[]) {
  const sorted = [[0, length] as const, ...leaves].sort((a, b) => a[0] - b[0])
  const root = sorted.findIndex(([, duration]) => duration === length)
  const columns = {
    count: sorted.length,
    starts: Float64Array.from(sorted, ([start]) => start),
    durations: Float64Array.from(sorted, ([, duration]) => duration),
  }
  const tree = arrange(Int32Array.from(sorted, (_, i) => (i === root ? -1 : root)))
  return idleScale(columns as Parameters<typeof idleScale>[0], tree, length)
}

it('compresses the time in which only parents run', () => {
  const { gaps, shareOf, timeAt } = scaleOf(1_000, [
    [0, 50],
    [900, 100],
  ])
  expect(gaps).toEqual([{ from: 50, to: 900 }])
  expect(shareOf(50)).toBeCloseTo(50 / 153)
  expect(shareOf(900)).toBeCloseTo(53 / 153)
  expect(timeAt(shareOf(950))).toBeCloseTo(950)
})

it('compresses nothing where a short pause follows another', () => {
  const { gaps, shareOf } = scaleOf(1_000, [
    [0, 480],
    [520, 480],
  ])
  expect(gaps).toEqual([])
  expect(shareOf(250)).toBe(linearScale(1_000).shareOf(250))
})

it('keeps the order of times and reaches both ends, whatever the spans are', () => {
  const time = fc.integer({ min: 0, max: 999 })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(time, fc.integer({ min: -50, max: 900 })), { maxLength: 30 }),
      time,
      time,
      (leaves, a, b) => {
        const { shareOf, timeAt, gaps } = scaleOf(1_000, leaves)
        expect([shareOf(0), shareOf(1_000)]).toEqual([0, 1])
        expect(gaps.length).toBeLessThanOrEqual(20)
        if (a < b) expect(shareOf(a)).toBeLessThan(shareOf(b))
        expect(timeAt(shareOf(a))).toBeCloseTo(a, 5)
      },
    ),
    {
      examples: [
        [
          [
            [50, 0],
            [749, 153],
            [951, 0],
          ],
          0,
          0,
        ],
      ],
    },
  )
})
