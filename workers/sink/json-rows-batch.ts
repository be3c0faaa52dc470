import { RowsTooLarge } from '../../clickhouse/native/growing-buffer.ts'
import { RowsBudget } from '../../clickhouse/native/rows-budget.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { requestColumnBytes } from './job-limits.ts'
import { blocksOf, type RowBatch } from './row-batch.ts'

/** Creates a batch of requests whose JSON bodies the service wrote itself, one row each. `appendRow` throws on other bodies. */
export function createJsonRowsBatch(
  buffers: readonly TableBuffer[],
  appendRow: (frame: PayloadFrame, value: unknown) => void,
): RowBatch {
  const budget = new RowsBudget(buffers.flatMap(buffer => buffer.leaves.all))
  const measure = () => buffers.reduce((sum, buffer) => sum + buffer.measure(), 0)
  const rewind = () => {
    for (const buffer of buffers) buffer.rewind()
  }
  return {
    append(frame, body, limitBytes = requestColumnBytes(body.length)) {
      const usedBytes = measure()
      for (const buffer of buffers) buffer.keepMeasured()
      budget.begin(limitBytes, usedBytes)
      try {
        appendRow(frame, JSON.parse(body.toString()))
        budget.end(measure())
        return { ok: true, rows: 1, rejected: {} }
      } catch (error) {
        rewind()
        if (error instanceof RowsTooLarge) return { ok: false, reason: 'rows_too_large' }
        throw error
      }
    },
    get rows() {
      return buffers.reduce((sum, buffer) => sum + buffer.rows, 0)
    },
    get derivedRows() {
      return buffers.slice(1).reduce((sum, buffer) => sum + buffer.rows, 0)
    },
    get bytes() {
      return buffers.reduce((sum, buffer) => sum + buffer.bytes, 0)
    },
    get capacityBytes() {
      return budget.capacityBytes
    },
    markJob() {
      for (const buffer of buffers) buffer.markJob()
    },
    rewindJob() {
      for (const buffer of buffers) buffer.rewindJob()
    },
    tables: () => blocksOf(buffers),
    reset() {
      for (const buffer of buffers) buffer.reset()
    },
    shrink() {
      for (const buffer of buffers) buffer.shrink()
    },
  }
}
