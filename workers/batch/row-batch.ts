import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'

/** What became of one request's bytes: all rows but those rejected for a reason are in the batch, or none is. */
export type AppendResult =
  | { readonly ok: true; readonly rows: number; readonly rejected: Readonly<Partial<Record<string, number>>> }
  | { readonly ok: false; readonly reason: string }

/** One insert of a batch: a table and its rows as a block of ClickHouse's Native format. */
export interface TableBlock {
  readonly table: string
  readonly rows: number
  readonly columns: readonly string[]
  readonly block: readonly Uint8Array[]
}

/** Rows that wait to be inserted together, in column buffers that are used again for the next batch. */
export interface RowBatch {
  readonly rows: number
  readonly bytes: number
  /** Decodes a request (already decompressed) into rows. Leaves the batch as it was when it answers `ok: false`. */
  append(frame: PayloadFrame, body: Buffer): AppendResult
  /** The blocks to insert, in this order. Valid until `reset`. */
  tables(): readonly TableBlock[]
  /** What of these rows is to be symbolicated once they are stored: frames for the queue `symbolication`. */
  stackRequests?(): readonly PayloadFrame[]
  /** The batch is stored, and its requests are on their way. */
  finished?(): void
  reset(): void
}

/** The blocks of those tables that have rows. They hold until the next append or reset of their buffers. */
export function blocksOf(buffers: readonly TableBuffer[]): TableBlock[] {
  return buffers
    .filter(buffer => buffer.rows > 0)
    .map(buffer => ({
      table: buffer.table,
      columns: buffer.columns.map(column => column.name),
      rows: buffer.rows,
      block: buffer.block(),
    }))
}
