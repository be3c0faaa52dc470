import { DeadLettersTable } from '../../clickhouse/tables/dead-letters-table.ts'
import { storedLetterSchema } from '../../schemas/queues/dead-letters.ts'
import { detailOf, labelOf } from '../../shared/runtime/reason.ts'
import { createJsonRowsBatch } from '../sink/json-rows-batch.ts'
import type { RowBatch } from '../sink/row-batch.ts'

/** Creates rows of `dead_letters` from the stored letters in the queue `dead-letter-index`. */
export function createDeadLettersBatch(): RowBatch {
  const table = new DeadLettersTable()
  return createJsonRowsBatch([table.buffer], ({ workspaceId, surfaceId, receivedAtMs, receipt = '' }, value) => {
    const { reason, index, offset, length, ...letter } = storedLetterSchema.parse(value)
    table.append({
      ...letter,
      workspaceId,
      surfaceId,
      receivedAtMs,
      receipt,
      reason: labelOf(reason),
      detail: detailOf(reason),
      jobIndex: index,
      objectOffset: offset,
      objectLength: length,
    })
  })
}
