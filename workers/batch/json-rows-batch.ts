import { RowsTooLarge } from '../../clickhouse/native/growing-buffer.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { blocksOf, type RowBatch } from './row-batch.ts'

/** Creates a batch of requests whose JSON bodies the service wrote itself, one row each. `appendRow` throws on other bodies. */
export function createJsonRowsBatch(
  buffers: readonly TableBuffer[],
  appendRow: (frame: PayloadFrame, value: unknown) => void,
): RowBatch {
  const rewind = () => {
    for (const buffer of buffers) buffer.rewind()
  }
  return {
    append(frame, body) {
      for (const buffer of buffers) buffer.mark()
      try {
        appendRow(frame, JSON.parse(body.toString()))
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
    get bytes() {
      return buffers.reduce((sum, buffer) => sum + buffer.bytes, 0)
    },
    tables: () => blocksOf(buffers),
    reset() {
      for (const buffer of buffers) buffer.reset()
    },
  }
}
