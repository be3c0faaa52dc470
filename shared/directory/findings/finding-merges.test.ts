import { expect, it } from 'vitest'
import { mergesInto, partsOf, withMerged } from './finding-merges.ts'

const merges = new Map([
  ['b', 'a'],
  ['d', 'c'],
  ['e', 'a'],
])

it('finds those that are merged into some findings', () => {
  expect([...mergesInto(merges, ['a', 'x'])]).toEqual([
    ['b', 'a'],
    ['e', 'a'],
  ])
  expect(withMerged(merges, ['x', 'a'])).toEqual(['x', 'a', 'b', 'e'])
  expect(withMerged(new Map(), ['a'])).toEqual(['a'])
})

it('divides findings into parts, each with those merged into them, of which none is in two', () => {
  const many = new Map(Array.from({ length: 3_000 }, (_, i) => [`m${i}`, `f${i % 4}`]))
  const ids = ['f0', 'f1', 'none', 'f2', 'f3']
  const parts = [...partsOf(many, ids)]
  expect(parts.map(({ findingIds }) => findingIds.length)).toEqual([1_502, 1_503])
  expect(parts.flatMap(({ findingIds }) => findingIds).sort()).toEqual([...ids, ...many.keys()].sort())
  for (const part of parts) {
    expect([...part.merges].every(([id, into]) => part.findingIds.includes(id) && part.findingIds.includes(into))).toBe(
      true,
    )
  }
  expect([...partsOf(many, [])]).toEqual([])
})
