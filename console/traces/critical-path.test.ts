import { expect, it } from 'vitest'
import { criticalPath } from './critical-path.ts'
import { arrange } from './span-tree.ts'

type Span = readonly [start: number, duration: number, parent: number]

function pathOf(spans: readonly Span[]): number[] {
  const columns = {
    count: spans.length,
    starts: Float64Array.from(spans, ([start]) => start),
    durations: Float64Array.from(spans, ([, duration]) => duration),
  }
  const tree = arrange(Int32Array.from(spans, ([, , parent]) => parent))
  return [...criticalPath(columns as Parameters<typeof criticalPath>[0], tree).spans].sort((a, b) => a - b)
}

it('has the child that ended last, and those that ended before it began', () => {
  // 1 and 2 run at the same time, 2 longer; then 3, which waits for 4.
  expect(
    pathOf([
      [0, 100, -1],
      [5, 20, 0],
      [5, 35, 0],
      [45, 50, 0],
      [50, 40, 3],
    ]),
  ).toEqual([0, 2, 3, 4])
})

it('counts a child that outlives its parent until the end of the parent, and none that begins after it', () => {
  expect(
    pathOf([
      [0, 50, -1],
      [10, 100, 0],
      [60, 10, 0],
    ]),
  ).toEqual([0, 1])
})

it('begins at the root that lasts longest, and ends on a chain of 100,000 levels', () => {
  expect(
    pathOf([
      [0, 5, -1],
      [1, 50, -1],
      [2, 40, 1],
    ]),
  ).toEqual([1, 2])
  const chain = Array.from({ length: 100_000 }, (_, i): Span => [i, 200_000 - 2 * i, i - 1])
  expect(pathOf(chain)).toHaveLength(100_000)
})
