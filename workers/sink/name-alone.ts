import { randomUUID } from 'node:crypto'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { NamedBatch } from '../queue/payloads/batch-record.ts'
import type { LockedJob, PayloadStore } from '../queue/payloads/payload-store.ts'

/** Names a batch of this job alone. Returns undefined if the job is in a batch or stored. */
export async function nameAlone(
  store: Pick<PayloadStore, 'nameBatch'>,
  job: LockedJob,
): Promise<NamedBatch | undefined> {
  const named: NamedBatch = { batchId: randomUUID(), jobIds: [job.jobId], storedTables: [] }
  const conflicts = await store.nameBatch(named.batchId, [job])
  if (conflicts.get(job.jobId) === 'lost') throw lockLost()
  return conflicts.size === 0 ? named : undefined
}

/**
 * Runs `work` on a batch that names only this job, until the payload of the job is gone. Throws a TransientError if a batch
 * names it with other jobs: its inserts may have been confirmed, so it must be resumed under its own tokens.
 */
export async function inBatchOfItsOwn(
  store: Pick<PayloadStore, 'look' | 'giveBack' | 'batch' | 'nameBatch'>,
  job: LockedJob,
  work: (named: NamedBatch) => Promise<unknown>,
): Promise<void> {
  let last: string | undefined
  for (;;) {
    const { batchId, payload } = await store.look(job.jobId)
    if (payload !== null) store.giveBack(payload)
    if (batchId === null) {
      if (payload === null) return
      await nameAlone(store, job)
      continue
    }
    if (batchId === last) throw new TransientError(`batch ${batchId} names a job but cannot be stored alone`)
    last = batchId
    const record = await store.batch(batchId)
    if (record === undefined) continue
    if (record.jobIds.length > 1) throw new TransientError(`batch ${batchId} names other jobs as well`)
    await work({ batchId, ...record })
  }
}

/** Returns the error of a job whose lock was lost. */
export function lockLost(): TransientError {
  return new TransientError('the lock of the job was lost', { code: 'PENSTOCK_LOCK_LOST' })
}
