import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arrange, collapseAll, reveal, visibleRows } from './span-tree.ts'

const tree = (...parents: number[]) => arrange(Int32Array.from(parents))

describe('the tree of a trace', () => {
  it('has each span before its children, and siblings in their order', () => {
    const { order, depths, sizes, siblingPositions, siblingCounts } = tree(-1, 0, 1, 0, -1, 1)
    expect([...order]).toEqual([0, 1, 2, 5, 3, 4])
    expect([...depths]).toEqual([0, 1, 2, 1, 0, 2])
    expect([...sizes]).toEqual([5, 3, 1, 1, 1, 1])
    expect([...siblingPositions]).toEqual([1, 1, 1, 2, 2, 2])
    expect([...siblingCounts]).toEqual([2, 2, 2, 2, 2, 2])
  })

  it('shows a span whose parent is not retained as a root', () => {
    const { order, parents } = tree(-2, 0, -1)
    expect([...order]).toEqual([0, 1, 2])
    expect([...parents]).toEqual([-1, 0, -1])
  })

  it('cuts a cycle at its first span, with what hangs from it', () => {
    // 1 → 2 → 3 → 1, and 4 hangs from 3. 0 is a root, and 5 is its own parent.
    const { order, cuts, depths, siblingCounts } = tree(-1, 3, 1, 2, 3, 5)
    expect([...order]).toEqual([0, 1, 2, 3, 4, 5])
    expect([...cuts]).toEqual([1, 5])
    expect([...depths]).toEqual([0, 0, 1, 2, 3, 0])
    expect([...siblingCounts]).toEqual([3, 3, 1, 1, 1, 3])
  })

  it('cuts a cycle at its first span also when another span of it is found before', () => {
    const { order, cuts } = tree(2, 2, 1)
    expect([...cuts]).toEqual([1])
    expect([...order]).toEqual([1, 2, 0])
  })

  it('arranges a chain of 100,000 levels', () => {
    const { depths, sizes } = arrange(Int32Array.from({ length: 100_000 }, (_, i) => i - 1))
    expect(depths[99_999]).toBe(99_999)
    expect(sizes[0]).toBe(100_000)
  })

  it('has every span once and no span before its parent, whatever the parents are', () => {
    const parentLists = fc
      .integer({ min: 1, max: 60 })
      .chain(count => fc.array(fc.integer({ min: -2, max: count - 1 }), { minLength: count, maxLength: count }))
    fc.assert(
      fc.property(parentLists, list => {
        const { order, positions, parents, cuts, sizes, depths } = tree(...list)
        expect([...order].sort((a, b) => a - b)).toEqual(list.map((_, i) => i))
        for (const [span, given] of list.entries()) {
          const parent = parents[span] as number
          expect(parent).toBe(cuts.has(span) || given < 0 ? -1 : given)
          if (parent < 0) continue
          const position = positions[span] as number
          const above = positions[parent] as number
          expect(position).toBeGreaterThan(above)
          expect(position).toBeLessThan(above + (sizes[parent] as number))
          expect(depths[span]).toBe((depths[parent] as number) + 1)
        }
      }),
    )
  })
})

describe('the visible rows', () => {
  const { order, ...rest } = tree(-1, 0, 1, 0, -1, 1)
  const arranged = { order, ...rest }

  it('leave out all below a collapsed span', () => {
    expect([...visibleRows(arranged, Uint8Array.of(0, 1, 0, 0, 0, 0))]).toEqual([0, 1, 3, 4])
  })

  it('are the roots when all spans are collapsed, and all when none is', () => {
    const collapsed = new Uint8Array(6)
    collapseAll(arranged, collapsed, true)
    expect([...visibleRows(arranged, collapsed)]).toEqual([0, 4])
    collapseAll(arranged, collapsed, false)
    expect([...visibleRows(arranged, collapsed)]).toEqual([...order])
  })

  it('have a span again whose ancestors are expanded', () => {
    const collapsed = Uint8Array.of(1, 1, 0, 0, 0, 0)
    expect(reveal(arranged, collapsed, 2)).toBe(true)
    expect([...collapsed]).toEqual([0, 0, 0, 0, 0, 0])
    expect(reveal(arranged, collapsed, 2)).toBe(false)
  })
})
