import { decodePayload } from '../../shared/queue/payload-frame.ts'
import type { NamedBatch } from '../queue/payloads/batch-record.ts'
import type { PayloadStore } from '../queue/payloads/payload-store.ts'
import { Batch, type BatchOptions, type BatchSource, type NotAdded } from './batch.ts'
import { type JobLimits, NO_JOB_LIMITS } from './job-limits.ts'
import type { RowBatch } from './row-batch.ts'
import { recordedShards } from './shard-blocks.ts'

/** Dependencies of forming a batch. */
interface FormBatchDeps extends BatchSource {
  readonly store: Pick<PayloadStore, 'payload' | 'giveBack'>
}

/** A batch that was formed from named jobs, or why it cannot be. */
export type FormedBatch =
  | { readonly ok: true; readonly batch: Batch }
  | { readonly ok: false; readonly reason: 'gone' | NotAdded }

/** Options of forming a batch. */
interface FormBatchOptions extends BatchOptions {
  /** None by default: the jobs were within their bounds when they were named. */
  readonly limits?: JobLimits
}

/**
 * Forms a named batch of the payloads of its jobs, in their order, with one payload in memory at a time. `gone`: a payload is
 * no longer in Redis. Payloads are deleted in one step with their batch, so another worker has stored or split it.
 */
export async function formBatch(
  deps: FormBatchDeps,
  named: NamedBatch,
  rows: RowBatch,
  { limits = NO_JOB_LIMITS, ...options }: FormBatchOptions = {},
): Promise<FormedBatch> {
  const { batchId, jobIds, storedTables, unstored, formed } = named
  const shards = recordedShards(named) ?? (await deps.activeShards?.())
  const rules = formed && (formed.rules ?? {})
  const batch = new Batch(deps, rows, { id: batchId, shards, storedTables, unstored, rules, ...options })
  for (const jobId of jobIds) {
    const payload = await deps.store.payload(jobId)
    if (payload === null) return { ok: false, reason: 'gone' }
    const added = await batch.add({ jobId, lane: 'express', token: '' }, decodePayload(payload), payload.length, limits)
    deps.store.giveBack(payload)
    if (added === 'split' || added === 'large') return { ok: false, reason: added }
  }
  await rows.complete?.()
  return { ok: true, batch }
}
