import { RowsTooLarge } from '../../clickhouse/native/growing-buffer.ts'
import { RowsBudget } from '../../clickhouse/native/rows-budget.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { RejectedByReason } from '../../shared/runtime/reason.ts'
import { requestColumnBytes } from './job-limits.ts'
import { blocksOf, type RowBatch } from './row-batch.ts'

/** Appended rows of a request, and what of it is left out. */
interface AppendedRows {
  readonly rows: number
  readonly rejected?: RejectedByReason | undefined
  readonly scrubbed?: ReadonlyMap<string, number> | undefined
}

/** Requests that derive from the rows. They are marked, rewound and reset with them. */
interface StackRequests {
  readonly frames: readonly PayloadFrame[]
  finished(leftOut: ReadonlySet<string>): void
  mark(): void
  rewind(): void
  markJob(): void
  rewindJob(): void
  reset(): void
}

const NO_REQUESTS: StackRequests = {
  ...{ frames: [], finished() {}, mark() {}, rewind() {} },
  ...{ markJob() {}, rewindJob() {}, reset() {} },
}

/**
 * Creates a batch of requests whose bodies the service wrote itself. `append` fills the buffers, and throws on a body that it
 * cannot read.
 */
export function createBufferedRows(
  buffers: readonly TableBuffer[],
  append: (frame: PayloadFrame, body: Buffer) => AppendedRows,
  requests: StackRequests = NO_REQUESTS,
): RowBatch {
  const budget = new RowsBudget(buffers.flatMap(buffer => buffer.leaves.all))
  const measure = () => buffers.reduce((sum, buffer) => sum + buffer.measure(), 0)
  const each = (change: (part: TableBuffer) => void) => {
    for (const buffer of buffers) change(buffer)
  }
  return {
    append(frame, body, limitBytes = requestColumnBytes(body.length)) {
      const usedBytes = measure()
      each(buffer => buffer.keepMeasured())
      requests.mark()
      budget.begin(limitBytes, usedBytes)
      try {
        const { rows, rejected = {}, scrubbed } = append(frame, body)
        budget.end(measure())
        return { ok: true, rows, rejected, scrubbed }
      } catch (error) {
        each(buffer => buffer.rewind())
        requests.rewind()
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
      each(buffer => buffer.markJob())
      requests.markJob()
    },
    rewindJob() {
      each(buffer => buffer.rewindJob())
      requests.rewindJob()
    },
    tables: () => blocksOf(buffers),
    stackRequests: () => requests.frames,
    finished: leftOut => requests.finished(leftOut),
    reset() {
      each(buffer => buffer.reset())
      requests.reset()
    },
    shrink() {
      each(buffer => buffer.shrink())
      requests.reset()
    },
  }
}
