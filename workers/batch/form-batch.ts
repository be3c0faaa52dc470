import { decodePayload } from '../../shared/queue/payload-frame.ts'
import type { PayloadStore } from '../queue/payload-store.ts'
import { type Batch, type BatchSource, createBatch } from './open-batch.ts'
import type { RowBatch } from './row-batch.ts'

export type FormedBatch =
  | { readonly ok: true; readonly batch: Batch }
  | { readonly ok: false; readonly reason: 'gone' | 'too_large' }

/**
 * Forms a batch of these jobs' payloads, in this order, one payload in memory at a time. `gone`: a payload is not there
 * any more; payloads go in one step with their batch, so it was stored or split by another worker. `too_large`: a job
 * decodes to more than `maxDecodedBytes`.
 */
export async function formBatch(
  deps: BatchSource & { store: Pick<PayloadStore, 'payload' | 'giveBack'> },
  jobIds: readonly string[],
  rows: RowBatch,
  maxDecodedBytes = Number.POSITIVE_INFINITY,
): Promise<FormedBatch> {
  const batch = createBatch(deps, rows)
  for (const jobId of jobIds) {
    const payload = await deps.store.payload(jobId)
    if (payload === null) return { ok: false, reason: 'gone' }
    const pooled = await batch.add({ jobId, token: '' }, decodePayload(payload), payload.length, maxDecodedBytes)
    deps.store.giveBack(payload)
    if (pooled === undefined) return { ok: false, reason: 'too_large' }
  }
  return { ok: true, batch }
}
