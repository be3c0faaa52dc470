import type { GrowingBuffer } from '../../clickhouse/native/growing-buffer.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { RefusalLabel, RejectedByReason } from '../../shared/runtime/reason.ts'
import type { Formation } from '../queue/payloads/batch-record.ts'

/** Records of a request that a rule has dropped. */
export interface DroppedRecords {
  readonly count: number
  /** The hash of the trace of each dropped span (`traceHash`). */
  readonly spans: readonly number[]
}

/**
 * The outcome of appending one request. Either all its rows are in the batch, except those rejected for a reason, or none
 * is.
 */
export type AppendResult =
  | {
      readonly ok: true
      readonly rows: number
      readonly rejected: Readonly<RejectedByReason>
      /** Number of values that scrubbing replaced, by the name of the rule; undefined if there are none. */
      readonly scrubbed?: ReadonlyMap<string, number> | undefined
      /** Records that rules have dropped, by the name of the rule; undefined if there are none. */
      readonly dropped?: ReadonlyMap<string, DroppedRecords> | undefined
    }
  | { readonly ok: false; readonly reason: RefusalLabel; readonly detail?: string | undefined }

/** A request, and the positions of those of its records that are decoded; all if it names none. */
export type SelectedFrame = PayloadFrame & { readonly only?: ReadonlySet<number> | undefined }

/** One insert of a batch: a table, and its rows as a block of ClickHouse's Native format. */
export interface TableBlock {
  /** The table, or its part on one shard (`unitName`). */
  readonly table: string
  readonly rows: number
  readonly columns: readonly string[]
  readonly block: readonly Uint8Array[]
  /** The rows, if they can be divided by shard. */
  readonly buffer?: TableBuffer
}

/** Records that derive from the rows and leave for another queue when these are stored (`passed-on.ts`). */
export interface PassedOnRecords {
  readonly bytes: GrowingBuffer
  /** The same bytes. Its rows are the records. */
  readonly buffer: TableBuffer
}

/** Rows that are inserted together, in column buffers that the next batch uses again. */
export interface RowBatch {
  readonly rows: number
  /** Rows in other tables than the first one. */
  readonly derivedRows?: number
  readonly passedOn?: PassedOnRecords | undefined
  readonly bytes: number
  /** Bytes of memory that the buffers occupy, including what is not used. */
  readonly capacityBytes: number
  /**
   * Reads what decoding these requests needs. A batch that is formed again has the rules of its record. Throws TransientErrors.
   */
  prepare?(frames: readonly PayloadFrame[], rules?: Formation['rules']): Promise<void>
  /** Returns the revisions of the rules by which the rows are made. */
  rules?(): Formation['rules']
  /**
   * Decodes a decompressed request into rows. Leaves the batch unchanged when it returns `ok: false`. A request that adds
   * more than `limitBytes` to the buffers is refused (`requestColumnBytes` of the body, if left out).
   */
  append(frame: SelectedFrame, body: Buffer, limitBytes?: number): AppendResult
  /** Begins a job of several requests. `rewindJob` returns to this state. */
  markJob(): void
  /** Removes the rows of the requests that were appended since `markJob`. */
  rewindJob(): void
  /** Completes the rows after the last request, in about a second at most, without changing their number. Never rejects. */
  complete?(): Promise<void>
  /** Returns the blocks to insert, in this order. They are valid until `reset`. */
  tables(): readonly TableBlock[]
  /** Returns the stacks of these rows to symbolicate once the rows are stored, as frames for the queue `symbolication`. */
  stackRequests?(): readonly PayloadFrame[]
  /** Returns the statistics of the spans among these rows, as payloads for the queue `span-stats`. */
  spanStats?(): readonly (readonly PayloadFrame[])[]
  /** Runs when the rows are stored, before the batch is finished. Throws TransientErrors. */
  stored?(): Promise<void>
  /**
   * Runs when the batch is stored and its stack requests are in Redis. `leftOut` names the surfaces whose requests were left
   * out (`shareMember`).
   */
  finished?(leftOut: ReadonlySet<string>): void
  /** Removes all rows and keeps the memory for the next batch. */
  reset(): void
  /** Removes all rows and gives the memory back. */
  shrink(): void
}

/** Returns the blocks of the tables that have rows. They are valid until the next append or reset of their buffers. */
export function blocksOf(buffers: readonly TableBuffer[]): TableBlock[] {
  return buffers
    .filter(buffer => buffer.rows > 0)
    .map(buffer => ({
      table: buffer.table,
      columns: buffer.columns.map(column => column.name),
      rows: buffer.rows,
      block: buffer.block(),
      buffer,
    }))
}

/** The rows of a batch that refuses every request. */
export const NO_ROWS: RowBatch = {
  rows: 0,
  bytes: 0,
  capacityBytes: 0,
  append: () => ({ ok: true, rows: 0, rejected: {} }),
  markJob() {},
  rewindJob() {},
  tables: () => [],
  reset() {},
  shrink() {},
}
