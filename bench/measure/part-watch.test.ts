import { expect, it } from 'vitest'
import { sumOf } from './part-watch.ts'

it('counts parts of one block as inserts, whatever their level, and all others as merges', () => {
  const part = (name: string, isInsert: number, rows: number) => ({
    table: 'spans',
    name,
    isInsert,
    rows: String(rows),
    bytes: String(rows * 20),
  })
  const parts = [part('1_1_0', 1, 100), part('2_2_1', 1, 50), part('1_2_2', 0, 150), part('1_9_3', 0, 700)]
  expect(sumOf('spans', parts)).toEqual({
    table: 'spans',
    insertedRows: 150,
    insertedBytes: 3_000,
    mergedRows: 850,
    mergedBytes: 17_000,
    inserts: 2,
    merges: 2,
  })
})
