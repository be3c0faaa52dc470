import type { AppendResult, RowBatch } from '../../batch/row-batch.ts'
import type { PayloadOrigin } from './refusal.ts'

/** Rows of a signal: they derive from the body and from less of its frame than the worker has. */
export interface OtlpBatch extends RowBatch {
  append(origin: PayloadOrigin, body: Buffer): AppendResult
}
