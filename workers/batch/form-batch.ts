import { decodePayload } from '../../shared/queue/payload-frame.ts'
import type { PayloadStore } from '../queue/payload-store.ts'
import { Batch, type BatchSource } from './batch.ts'
import type { RowBatch } from './row-batch.ts'

/** Dependencies of forming a batch. */
export interface FormBatchDeps extends BatchSource {
  readonly store: Pick<PayloadStore, 'payload' | 'giveBack'>
}

/** A batch that was formed from named jobs, or why it cannot be. */
export type FormedBatch =
  | { readonly ok: true; readonly batch: Batch }
  | { readonly ok: false; readonly reason: 'gone' | 'too_large' }

/**
 * Forms a batch of the payloads of these jobs, in this order, with one payload in memory at a time. `gone`: a payload is
 * no longer in Redis. Payloads are deleted in one step with their batch, so another worker has stored or split it.
 * `too_large`: a job decodes to more than `maxDecodedBytes`.
 */
export async function formBatch(
  deps: FormBatchDeps,
  jobIds: readonly string[],
  rows: RowBatch,
  maxDecodedBytes = Number.POSITIVE_INFINITY,
): Promise<FormedBatch> {
  const batch = new Batch(deps, rows)
  for (const jobId of jobIds) {
    const payload = await deps.store.payload(jobId)
    if (payload === null) return { ok: false, reason: 'gone' }
    const pooled = await batch.add(
      { jobId, lane: 'express', token: '' },
      decodePayload(payload),
      payload.length,
      maxDecodedBytes,
    )
    deps.store.giveBack(payload)
    if (pooled === undefined) return { ok: false, reason: 'too_large' }
  }
  return { ok: true, batch }
}
