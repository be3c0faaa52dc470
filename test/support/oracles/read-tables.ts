import type { RowBatch } from '../../../workers/sink/row-batch.ts'
import { type NativeValue, readBlock, rowsOf } from './read-block.ts'
import { wholeRow } from './whole-row.ts'

/** Returns the rows of a batch by table, read back from its Native blocks. */
export function readTables(batch: RowBatch): Map<string, Record<string, NativeValue>[]> {
  return new Map(
    batch.tables().map(({ table, rows, columns, block }) => {
      const read = readBlock(Buffer.concat(block))
      const names = read.columns.map(column => column.name)
      if (read.rows !== rows || names.join() !== columns.join()) throw new Error(`the block of ${table} is not as told`)
      return [table, rowsOf(read).map(wholeRow)]
    }),
  )
}
