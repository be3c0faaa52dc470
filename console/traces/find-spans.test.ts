import { describe, expect, it } from 'vitest'
import { findByText, findErrors, nextMatch } from './find-spans.ts'
import { idOf, indexOfId, type SpanColumns } from './span-columns.ts'
import { arrange } from './span-tree.ts'

const columns: SpanColumns = {
  count: 4,
  // The id of the second span is also in the first two ids, across their border.
  ids: ['00000000000000aa', '000000000000aa00', '00000000000000cc', '00000000000000dd'].join(''),
  starts: Float64Array.of(0, 1, 2, 3),
  durations: Float64Array.of(9, 1, 1, 1),
  parents: Int32Array.of(-1, 0, 0, 1),
  nameIndexes: Int32Array.of(0, 1, 1, -1),
  serviceIndexes: Int32Array.of(0, 0, 1, 1),
  statuses: Uint8Array.of(0, 2, 0, 2),
  names: ['GET /cart', 'SELECT'],
  services: ['shop', 'database'],
  serviceHues: [0, 1],
}
const tree = arrange(columns.parents)

describe('a search', () => {
  it('finds names, services and ids, in the order of the rows', () => {
    expect([...findByText(columns, tree, 'select').spans]).toEqual([1, 2])
    expect([...findByText(columns, tree, 'DATA').spans]).toEqual([3, 2])
    expect([...findByText(columns, tree, ' 00000000000000cc ').spans]).toEqual([2])
    expect([...findByText(columns, tree, '').spans]).toEqual([])
    expect([...findErrors(columns, tree).spans]).toEqual([1, 3])
  })

  it('goes to the next and the previous match, and around', () => {
    const matches = findByText(columns, tree, 'select')
    expect(nextMatch(tree, matches, 0, 1)).toBe(1)
    expect(nextMatch(tree, matches, 1, 1)).toBe(2)
    expect(nextMatch(tree, matches, 2, 1)).toBe(1)
    expect(nextMatch(tree, matches, 2, -1)).toBe(1)
    expect(nextMatch(tree, matches, 0, -1)).toBe(2)
    expect(nextMatch(tree, findByText(columns, tree, 'absent'), 0, 1)).toBeUndefined()
  })
})

it('finds an id only where one begins', () => {
  for (let span = 0; span < columns.count; span++) expect(indexOfId(columns, idOf(columns, span))).toBe(span)
  expect(indexOfId(columns, '0000000000aa0000')).toBe(-1)
  expect(indexOfId(columns, 'aa')).toBe(-1)
})
