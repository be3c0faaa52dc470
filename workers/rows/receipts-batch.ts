import { IngestLogTable } from '../../clickhouse/tables/ingest-log-table.ts'
import { settlementSchema } from '../../schemas/queues/jobs.ts'
import { commitOf, indexOf } from '../../shared/ids/receipt.ts'
import { labelOf } from '../../shared/runtime/reason.ts'
import { createJsonRowsBatch } from '../sink/json-rows-batch.ts'
import type { RowBatch } from '../sink/row-batch.ts'

/** Creates rows of `ingest_log` from the settlements of the queue `receipts`, one row per request. */
export function createReceiptsBatch(): RowBatch {
  const table = new IngestLogTable()
  return createJsonRowsBatch([table.buffer], ({ workspaceId, surfaceId, receivedAtMs, receipt = '' }, value) => {
    const { kind, jobId, bytes, refusal, replayedAtMs } = settlementSchema.parse(value)
    const index = indexOf(receipt)
    // A refused request that is neither kept nor discarded was refused in its response, and is not a dead letter.
    const counted = (isCounted: boolean | undefined) =>
      new Map(refusal && isCounted ? [[labelOf(refusal.reason), 1]] : [])
    table.append({
      workspaceId,
      surfaceId,
      receivedAtMs,
      replayedAtMs,
      jobId,
      signal: kind,
      payloads: 1,
      bytes,
      rows: 0,
      derivedRows: 0,
      rejected: new Map(),
      deadLettered: counted(refusal?.objectKey !== ''),
      discarded: counted(refusal?.isDiscarded),
      commit: commitOf(receipt),
      indexes: [index],
      refused: refusal ? [{ index, ...refusal }] : [],
      discardedIndexes: refusal?.isDiscarded ? [index] : [],
      rejections: [],
    })
  })
}
