import { IngestLogTable } from '../../clickhouse/tables/ingest-log-table.ts'
import { settlementSchema } from '../../schemas/queues/jobs.ts'
import { commitOf, indexOf } from '../../shared/ids/receipt.ts'
import { createJsonRowsBatch } from '../batch/json-rows-batch.ts'
import type { RowBatch } from '../batch/row-batch.ts'

/** Rows of `ingest_log` from what the queue `receipts` says of requests, one each. */
export function createReceiptsBatch(): RowBatch {
  const table = new IngestLogTable()
  return createJsonRowsBatch([table.buffer], ({ workspaceId, surfaceId, receivedAtMs, receipt = '' }, value) => {
    const { kind, jobId, bytes, refusal } = settlementSchema.parse(value)
    const index = indexOf(receipt)
    // What is kept nowhere was refused in its answer, and is no dead letter.
    const deadLettered = new Map(refusal?.objectKey ? [[refusal.reason.split(':', 1)[0] as string, 1]] : [])
    table.append({
      workspaceId,
      surfaceId,
      receivedAtMs,
      jobId,
      signal: kind,
      payloads: 1,
      bytes,
      rows: 0,
      rejected: new Map(),
      deadLettered,
      commit: commitOf(receipt),
      indexes: [index],
      refused: refusal ? [{ index, ...refusal }] : [],
    })
  })
}
