import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { chooseSpans, DANGLING, ROOT, type TraceShape } from './choose-spans.ts'

const PLENTY = 1e9

function shape(parents: number[], errors: number[] = [], sizes?: number[]): TraceShape {
  const isError = new Uint8Array(parents.length)
  for (const error of errors) isError[error] = 1
  return { parents: Int32Array.from(parents), isError, sizes: Uint32Array.from(sizes ?? parents.map(() => 1)) }
}

describe('chooseSpans', () => {
  it('keeps roots, error spans and their ancestors before all others', () => {
    // 0 root; 1..5 its children; 6 under 5; 7 under 6 is the error.
    const parents = [ROOT, 0, 0, 0, 0, 0, 5, 6]
    expect(chooseSpans(shape(parents, [7]), 4, PLENTY)).toEqual([0, 5, 6, 7])
    expect(chooseSpans(shape(parents, [7]), 6, PLENTY)).toEqual([0, 1, 2, 5, 6, 7])
  })

  it('fills the rest from the top of the tree, so that the shown part is connected', () => {
    // A chain 0-1-2-3, then two children of the root that start later.
    const parents = [ROOT, 0, 1, 2, 0, 0]
    expect(chooseSpans(shape(parents), 4, PLENTY)).toEqual([0, 1, 4, 5])
  })

  it('leaves room for errors when there are more roots than fit', () => {
    const parents = Array.from({ length: 100 }, () => ROOT)
    expect(chooseSpans(shape([...parents, 99], [100]), 10, PLENTY)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 99, 100])
  })

  it('shows the near ancestors of every error before the far ancestors of any', () => {
    // A root, a chain of 3,000 under it that ends in an error, and another error below two more spans.
    const chain = Array.from({ length: 3_000 }, (_, i) => i)
    const chosen = new Set(chooseSpans(shape([ROOT, ...chain, 0, 3_001, 3_002], [3_000, 3_003]), 400, PLENTY))
    for (const span of [0, 3_000, 2_900, 3_001, 3_002, 3_003]) expect(chosen.has(span)).toBe(true)
    // The rest goes to the ancestors of the first error, rather than to the top of the tree.
    expect([...chosen].filter(span => span > 0 && span <= 3_000)).toEqual(chain.slice(-396).map(i => i + 1))
  })

  it('walks no cycle twice, and chooses spans that depend on a cycle last', () => {
    const parents = [1, 2, 0, 3, 0, DANGLING, 5]
    expect(chooseSpans(shape(parents), 2, PLENTY)).toEqual([5, 6])
    expect(chooseSpans(shape(parents, [0, 4]), 7, PLENTY)).toEqual([0, 1, 2, 3, 4, 5, 6])
  })

  it('skips a span that is larger than the rest of the budget', () => {
    expect(chooseSpans(shape([ROOT, 0, 0], [], [10, 500, 20]), 3, 100)).toEqual([0, 2])
  })

  it('chooses min(limit, all) spans, with the whole path to an error if it fits', () => {
    const trees = fc.array(fc.nat(), { minLength: 1, maxLength: 60 }).map(numbers =>
      // Any span may be the parent of any other, which makes roots, gaps, trees and cycles.
      numbers.map(number => (number % (numbers.length + 2)) - 2),
    )
    fc.assert(
      fc.property(trees, fc.nat(), fc.integer({ min: 1, max: 80 }), (parents, error, limit) => {
        const failing = error % parents.length
        const chosen = chooseSpans(shape(parents, [failing]), limit, PLENTY)
        expect(chosen).toHaveLength(Math.min(limit, parents.length))
        expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b))
        const path = new Set<number>()
        for (let at = failing; at >= 0 && !path.has(at); at = parents[at] ?? ROOT) path.add(at)
        if (path.size <= limit / 2) expect(chosen).toEqual(expect.arrayContaining([...path]))
      }),
    )
  })

  it('chooses from a chain of a hundred thousand spans within half a second', () => {
    const parents = Array.from({ length: 100_000 }, (_, i) => i - 1)
    const choose = () => {
      const chosen = chooseSpans(shape(parents, [99_999]), 2000, PLENTY)
      expect(chosen).toContain(99_999)
      expect(chosen).toHaveLength(2000)
    }
    expect(leastCpuMs(choose, 500)).toBeLessThan(500)
  })
})
