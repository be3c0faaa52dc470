import { randomUUID } from 'node:crypto'
import { Budget } from '../../shared/concurrency/budget.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { LaneBudget } from '../queue/lane-budget.ts'
import type { HeldJob, NamedBatch, PayloadStore } from '../queue/payload-store.ts'
import type { TakenJob } from '../queue/pool.ts'
import { Batch, type BatchSource, type PooledJob } from './batch.ts'
import { formBatch } from './form-batch.ts'
import type { RowBatch } from './row-batch.ts'
import type { BatchStorer } from './store-batch.ts'

/** Bounds of a batch pool. */
export interface BatchPoolOptions {
  /** A batch is sealed at the first of these three bounds, as soon as an insert slot is free. */
  readonly maxRows: number
  readonly maxBytes: number
  readonly maxAgeMs: number
  readonly maxConcurrentInserts: number
  /** Payload bytes that are fetched from Redis and not yet decoded. */
  readonly maxFetchedBytes: number
  /** A job whose requests decompress to more is split: small bodies with large rows may have shared its commit. */
  readonly maxJobDecodedBytes: number
}

/** Dependencies of a batch pool. */
export interface BatchPoolDeps extends BatchSource {
  readonly store: PayloadStore
  readonly storer: Pick<BatchStorer, 'store' | 'split'>
  readonly createRows: () => RowBatch
  readonly logger: Logger
}

interface OpenBatch {
  readonly batch: Batch
  readonly timer: NodeJS.Timeout
  /** The insert slot, which is requested once, by age or by size. */
  slot?: Promise<() => void>
}

/**
 * Collects jobs into named batches (`workers/README.md`). One batch is open. Sealed batches wait for an insert slot. While
 * all slots are taken, the open batch grows to its bounds and then blocks decoding, so that an unavailable store pauses
 * the pool with bounded memory.
 */
export class BatchPool {
  readonly #deps: BatchPoolDeps
  readonly #options: BatchPoolOptions
  readonly #fetched: LaneBudget
  readonly #slots: Budget
  readonly #idleRows: RowBatch[]
  readonly #rowsWanted: ((rows: RowBatch) => void)[] = []
  readonly #resuming = new Map<string, Promise<void>>()
  #open: OpenBatch | undefined
  #decoding: Promise<unknown> = Promise.resolve()

  constructor(deps: BatchPoolDeps, options: BatchPoolOptions) {
    this.#deps = deps
    this.#options = options
    this.#fetched = new LaneBudget(options.maxFetchedBytes)
    this.#slots = new Budget(options.maxConcurrentInserts)
    this.#idleRows = Array.from({ length: options.maxConcurrentInserts + 1 }, deps.createRows)
  }

  /**
   * Settles when the payload of the job is stored or dead-lettered, by this worker or another. Throws a TransientError
   * otherwise.
   */
  async process(job: TakenJob): Promise<void> {
    const { store } = this.#deps
    let resumed: string | undefined
    for (;;) {
      const release = await this.#fetched.acquire(job.lane, job.payloadBytes)
      let pooled: PooledJob | undefined
      try {
        const { batchId, payload } = await store.look(job.jobId)
        if (batchId !== null) {
          release()
          if (batchId === resumed) throw new TransientError(`batch ${batchId} names a job but cannot be formed again`)
          await this.#resumeOnce(batchId, job)
          resumed = batchId
          continue
        }
        if (payload === null) return
        pooled = await this.#decodeInTurn(() => this.#join(job, payload)).finally(() => store.giveBack(payload))
      } finally {
        release()
      }
      if (pooled && (await pooled.outcome) === 'stored') return
    }
  }

  /** Seals the open batch without waiting for its age. The batch grows until an insert slot and the decoder are free. */
  flush(): void {
    const flushed = this.#open
    if (flushed === undefined) return
    const sealUnlessReplaced = async () => (flushed === this.#open ? this.#seal() : undefined)
    void this.#slotOf(flushed).then(() => this.#decodeInTurn(sealUnlessReplaced))
  }

  /** Runs one job at a time, so that the rows of a job are contiguous and a batch is never sealed in the middle of a job. */
  #decodeInTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#decoding.then(work)
    this.#decoding = turn.catch(() => undefined)
    return turn
  }

  /** Decodes a job into the open batch. Returns undefined if the job was split, or is held by another worker. */
  async #join(job: HeldJob, payload: Buffer): Promise<PooledJob | undefined> {
    const { maxAgeMs, maxBytes, maxJobDecodedBytes, maxRows } = this.#options
    const frames = decodePayload(payload)
    if (this.#open === undefined) {
      const batch = new Batch(this.#deps, await this.#takeRows())
      this.#open = { batch, timer: setTimeout(() => this.flush(), maxAgeMs) }
    }
    const { batch } = this.#open
    const pooled = await batch.add(job, frames, payload.length, maxJobDecodedBytes).catch(error => {
      this.#abandon()
      throw error
    })
    if (pooled === undefined) {
      this.#abandon()
      await this.#splitJob(job)
    } else if (batch.rows.rows >= maxRows || batch.bytes >= maxBytes) await this.#seal()
    return pooled
  }

  /** Abandons the open batch, which has some rows of a job that cannot be in it. The other jobs in it start over. */
  #abandon(): void {
    if (this.#open === undefined) return
    const { batch, timer, slot } = this.#open
    this.#open = undefined
    clearTimeout(timer)
    void slot?.then(release => release())
    for (const job of batch.jobs) job.resolve('again')
    this.#giveBackRows(batch.rows)
  }

  async #splitJob(job: HeldJob): Promise<void> {
    const named: NamedBatch = { batchId: randomUUID(), jobIds: [job.jobId], storedTables: [] }
    const conflicts = await this.#deps.store.nameBatch(named.batchId, [job])
    if (conflicts.get(job.jobId) === 'lost') throw lockLost()
    if (conflicts.size === 0) await this.#deps.storer.split(named)
  }

  #slotOf(batch: OpenBatch): Promise<() => void> {
    batch.slot ??= this.#slots.acquire(1)
    return batch.slot
  }

  /** Closes the open batch and stores it. Runs in the decoder's turn, so nothing is decoded while it waits for a slot. */
  async #seal(): Promise<void> {
    const sealed = this.#open
    if (sealed === undefined) return
    clearTimeout(sealed.timer)
    const release = await this.#slotOf(sealed)
    this.#open = undefined
    void this.#storeSealed(sealed.batch).finally(() => {
      release()
      this.#giveBackRows(sealed.batch.rows)
    })
  }

  async #storeSealed(batch: Batch): Promise<void> {
    const { store, storer, logger } = this.#deps
    const { jobs } = batch
    try {
      const batchId = randomUUID()
      const conflicts = await store.nameBatch(batchId, jobs)
      if (conflicts.size > 0) {
        // Another worker took some of these jobs meanwhile. All start over, and find the taken ones named or stored.
        logger.info({ batchId, conflicts: conflicts.size, jobs: jobs.length }, 'batch could not be named')
        for (const job of jobs) {
          if (conflicts.get(job.jobId) === 'lost') job.reject(lockLost())
          else job.resolve('again')
        }
        return
      }
      const named: NamedBatch = { batchId, jobIds: jobs.map(job => job.jobId), storedTables: [] }
      const isStored = await storer.store(named, batch, jobs)
      for (const job of jobs) job.resolve(isStored ? 'stored' : 'again')
    } catch (error) {
      for (const job of jobs) job.reject(error)
    }
  }

  #resumeOnce(batchId: string, holder: HeldJob): Promise<void> {
    let running = this.#resuming.get(batchId)
    if (running === undefined) {
      running = this.#resume(batchId, holder).finally(() => this.#resuming.delete(batchId))
      this.#resuming.set(batchId, running)
    }
    return running
  }

  /** Forms the batch that names this job again, and stores it. If its inserts had succeeded, repeating them adds nothing. */
  async #resume(batchId: string, holder: HeldJob): Promise<void> {
    const { store, storer } = this.#deps
    const record = await store.batch(batchId)
    if (record === undefined) return
    const rows = await this.#takeRows()
    const release = await this.#slots.acquire(1)
    try {
      // Each of several jobs was within the limit when they were named together.
      const maxDecodedBytes = record.jobIds.length === 1 ? this.#options.maxJobDecodedBytes : Number.POSITIVE_INFINITY
      const formed = await formBatch(this.#deps, record.jobIds, rows, maxDecodedBytes)
      if (formed.ok) await storer.store({ batchId, ...record }, formed.batch, [holder])
      else if (formed.reason === 'too_large') await storer.split({ batchId, ...record })
    } finally {
      release()
      this.#giveBackRows(rows)
    }
  }

  #takeRows(): Promise<RowBatch> {
    const rows = this.#idleRows.pop()
    return rows ? Promise.resolve(rows) : new Promise(resolve => this.#rowsWanted.push(resolve))
  }

  #giveBackRows(rows: RowBatch): void {
    rows.reset()
    const wanted = this.#rowsWanted.shift()
    if (wanted) wanted(rows)
    else this.#idleRows.push(rows)
  }
}

function lockLost(): TransientError {
  return new TransientError('the lock of the job was lost', { code: 'PENSTOCK_LOCK_LOST' })
}
