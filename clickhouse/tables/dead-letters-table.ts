import { RECEIPT_BYTES } from '../../shared/ids/receipt.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** Records of a request that are left out for one reason. */
interface RejectedPositions {
  readonly reason: string
  readonly count: number
  /** Positions of the first of these records in the request. */
  readonly indexes: readonly number[]
}

/** A row of `dead_letters`. */
interface DeadLetterRow {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly queue: string
  readonly receivedAtMs: number
  readonly refusedAtMs: number
  readonly reason: string
  readonly detail: string
  /** The 16 bytes of the receipt in latin1; empty if no client has one. */
  readonly receipt: string
  readonly jobId: string
  readonly jobIndex: number
  readonly attempt: number
  readonly replayedAtMs: number
  readonly outcome: string
  readonly sessionId: string
  readonly objectKey: string
  readonly objectOffset: number
  readonly objectLength: number
  readonly bodyBytes: number
  readonly storedTables: readonly string[]
  readonly storedRecords: number
  readonly rejected: readonly RejectedPositions[]
}

/** The column buffers of the table `dead_letters`. */
export class DeadLettersTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #queue = new LowCardinality()
  readonly #receivedAt = new GrowingBuffer()
  readonly #refusedAt = new GrowingBuffer()
  readonly #reason = new LowCardinality()
  readonly #detail = new GrowingBuffer()
  readonly #receipt = new GrowingBuffer()
  readonly #jobId = new GrowingBuffer()
  readonly #jobIndex = new GrowingBuffer()
  readonly #attempt = new GrowingBuffer()
  readonly #replayedAt = new GrowingBuffer()
  readonly #outcome = new LowCardinality()
  readonly #sessionId = new GrowingBuffer()
  readonly #objectKey = new GrowingBuffer()
  readonly #objectOffset = new GrowingBuffer()
  readonly #objectLength = new GrowingBuffer()
  readonly #bodyBytes = new GrowingBuffer()
  readonly #storedTableOffsets = new GrowingBuffer()
  readonly #storedTables = new GrowingBuffer()
  readonly #storedRecords = new GrowingBuffer()
  readonly #rejectedOffsets = new GrowingBuffer()
  readonly #rejectedReasons = new GrowingBuffer()
  readonly #rejectedCounts = new GrowingBuffer()
  readonly #recordOffsets = new GrowingBuffer()
  readonly #recordIndexes = new GrowingBuffer()
  readonly #recordReasons = new GrowingBuffer()

  readonly buffer = new TableBuffer('dead_letters', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('queue', 'LowCardinality(String)', this.#queue),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('refused_at', "DateTime64(3, 'UTC')", this.#refusedAt),
    column('reason', 'LowCardinality(String)', this.#reason),
    column('detail', 'String', this.#detail),
    column('receipt', `FixedString(${RECEIPT_BYTES})`, this.#receipt),
    column('job_id', 'String', this.#jobId),
    column('job_index', 'UInt32', this.#jobIndex),
    column('attempt', 'UInt32', this.#attempt),
    column('replayed_at', "DateTime64(3, 'UTC')", this.#replayedAt),
    column('outcome', 'LowCardinality(String)', this.#outcome),
    column('session_id', 'String', this.#sessionId),
    column('object_key', 'String', this.#objectKey),
    column('object_offset', 'UInt64', this.#objectOffset),
    column('object_length', 'UInt64', this.#objectLength),
    column('body_bytes', 'UInt64', this.#bodyBytes),
    column('stored_tables', 'Array(String)', this.#storedTableOffsets, this.#storedTables),
    column('stored_records', 'UInt64', this.#storedRecords),
    column('rejected', 'Map(String, UInt64)', this.#rejectedOffsets, this.#rejectedReasons, this.#rejectedCounts),
    column(
      'rejected_records',
      'Array(Tuple(index UInt32, reason String))',
      ...[this.#recordOffsets, this.#recordIndexes, this.#recordReasons],
    ),
  ])

  /** Appends a row. */
  append(row: DeadLetterRow): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#queue.fill(this.#queue.indexOf(row.queue), 1)
    this.#receivedAt.integer64(row.receivedAtMs)
    this.#refusedAt.integer64(row.refusedAtMs)
    this.#reason.fill(this.#reason.indexOf(row.reason), 1)
    this.#detail.text(row.detail)
    for (let i = 0; i < RECEIPT_BYTES; i++) this.#receipt.u8(row.receipt.charCodeAt(i) || 0)
    this.#jobId.text(row.jobId)
    this.#jobIndex.u32(row.jobIndex)
    this.#attempt.u32(row.attempt)
    this.#replayedAt.integer64(row.replayedAtMs)
    this.#outcome.fill(this.#outcome.indexOf(row.outcome), 1)
    this.#sessionId.text(row.sessionId)
    this.#objectKey.text(row.objectKey)
    this.#objectOffset.integer64(row.objectOffset)
    this.#objectLength.integer64(row.objectLength)
    this.#bodyBytes.integer64(row.bodyBytes)
    this.#appendStoredTables(row.storedTables)
    this.#storedRecords.integer64(row.storedRecords)
    this.#appendRejected(row.rejected)
    this.buffer.rows++
  }

  #appendStoredTables(tables: readonly string[]): void {
    // The number before this row is read from the buffer instead of a counter, because the table can be reset and rewound.
    const offsets = this.#storedTableOffsets
    const before = offsets.length === 0 ? 0 : offsets.view.getUint32(offsets.length - 8, true)
    for (const table of tables) this.#storedTables.text(table)
    offsets.integer64(before + tables.length)
  }

  #appendRejected(rejected: readonly RejectedPositions[]): void {
    for (const { reason, count, indexes } of rejected) {
      this.#rejectedReasons.text(reason)
      this.#rejectedCounts.integer64(count)
      for (const index of indexes) {
        this.#recordIndexes.u32(index)
        this.#recordReasons.text(reason)
      }
    }
    this.#rejectedOffsets.integer64(this.#rejectedCounts.length / 8)
    this.#recordOffsets.integer64(this.#recordIndexes.length / 4)
  }
}
