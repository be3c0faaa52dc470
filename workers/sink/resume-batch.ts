import type { Budget } from '../../shared/concurrency/budget.ts'
import type { BatchRecord, NamedBatch } from '../queue/payloads/batch-record.ts'
import type { LockedJob, PayloadStore } from '../queue/payloads/payload-store.ts'
import type { BatchSource } from './batch.ts'
import { type FormedBatch, formBatch } from './form-batch.ts'
import { JOB_RESERVE_BYTES, type JobLimits, LARGE_JOB_RESERVE_BYTES, NO_JOB_LIMITS } from './job-limits.ts'
import { InsertSlot } from './pace/insert-slot.ts'
import type { RowsPool } from './rows-pool.ts'
import type { BatchStorer } from './store-batch.ts'

/** Dependencies of resuming a named batch. */
interface BatchResumerDeps extends BatchSource {
  readonly store: PayloadStore
  readonly storer: Pick<BatchStorer, 'store' | 'split' | 'settle'>
  readonly rowsPool: RowsPool
  readonly slots: Budget
}

/** Bounds of the batches that are resumed. */
interface BatchResumerOptions {
  readonly maxBytes: number
  readonly jobLimits: JobLimits
}

/** Forms named batches again and stores them. If the inserts of a batch had succeeded, repeating them adds nothing. */
export class BatchResumer {
  readonly #deps: BatchResumerDeps
  readonly #options: BatchResumerOptions
  readonly #running = new Map<string, Promise<'large' | undefined>>()

  constructor(deps: BatchResumerDeps, options: BatchResumerOptions) {
    this.#deps = deps
    this.#options = options
  }

  /**
   * Resumes the batch, once for all its jobs. Returns `large` if a body in it is or may be too large to be decoded while
   * others are; it must be resumed with `largeDeadline` then.
   */
  resume(batchId: string, holder: LockedJob, largeDeadline?: AbortSignal): Promise<'large' | undefined> {
    const key = largeDeadline === undefined ? batchId : `${batchId} large`
    let running = this.#running.get(key)
    if (running === undefined) {
      running = this.#resume(batchId, holder, largeDeadline).finally(() => this.#running.delete(key))
      this.#running.set(key, running)
    }
    return running
  }

  async #resume(
    batchId: string,
    holder: LockedJob,
    largeDeadline: AbortSignal | undefined,
  ): Promise<'large' | undefined> {
    const { store, storer, rowsPool, slots } = this.#deps
    const record = await store.batch(batchId)
    if (record === undefined) return undefined
    // This version may not have decoded the batch yet, so its bodies may be large.
    if (record.burnedId !== undefined && largeDeadline === undefined) return 'large'
    const named: NamedBatch = { batchId, ...record }
    const { limits, reserveBytes } = this.#boundsOf(record, largeDeadline !== undefined)
    const rows = await rowsPool.take()
    const slot = new InsertSlot(slots)
    try {
      await rowsPool.reserve(rows, reserveBytes, largeDeadline)
      await slot.hold()
      if (record.burnedId !== undefined && record.formed !== undefined) {
        await storer.settle(named, record.formed, rows, [holder], slot)
        return undefined
      }
      const formed: FormedBatch = await formBatch(this.#deps, named, rows, { limits })
      if (formed.ok) {
        rowsPool.settle(rows, formed.batch.letterBytes)
        await storer.store(named, formed.batch, [holder], slot)
      } else if (formed.reason === 'split' && isDivisible(record)) await storer.split(named)
      else if (formed.reason !== 'gone') return 'large'
      return undefined
    } finally {
      slot.release()
      rowsPool.giveBack(rows)
    }
  }

  /** The jobs of other batches were within their bounds when they were recorded, so only large bodies must be noticed. */
  #boundsOf(record: BatchRecord, isLarge: boolean): { limits: JobLimits; reserveBytes: number } {
    const { maxBytes, jobLimits } = this.#options
    const isBounded = isDivisible(record)
    const { maxBodyBytes } = isLarge ? NO_JOB_LIMITS : jobLimits
    return {
      limits: { ...(isBounded ? jobLimits : NO_JOB_LIMITS), maxBodyBytes },
      reserveBytes: isLarge ? LARGE_JOB_RESERVE_BYTES : JOB_RESERVE_BYTES + (isBounded ? 0 : maxBytes),
    }
  }
}

/** Returns whether the batch may be split: it has one job, and no insert that the parts would repeat under other ids. */
function isDivisible({ jobIds, formed }: BatchRecord): boolean {
  return jobIds.length === 1 && formed === undefined
}
