import type { Budget } from '../../shared/concurrency/budget.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { NamedBatch } from '../queue/payloads/batch-record.ts'
import type { LockedJob, PayloadStore } from '../queue/payloads/payload-store.ts'
import type { TakenJob } from '../queue/pool.ts'
import { isSuspected } from '../queue/suspects.ts'
import { Batch, type BatchSource, type NotAdded, type PooledJob } from './batch.ts'
import type { ColumnMemory } from './column-memory.ts'
import { JOB_RESERVE_BYTES, type JobLimits, LARGE_BODY_BYTES, LARGE_JOB_RESERVE_BYTES } from './job-limits.ts'
import type { LaneResources } from './lane-resources.ts'
import { lockLost, nameAlone } from './name-alone.ts'
import type { ExpressFirst } from './pace/express-first.ts'
import type { InsertPace } from './pace/insert-pace.ts'
import { InsertSlot } from './pace/insert-slot.ts'
import { BatchResumer } from './resume-batch.ts'
import type { RowBatch } from './row-batch.ts'
import type { RowsPool } from './rows-pool.ts'
import type { BatchStorer } from './store-batch.ts'
import { SuspectJobs } from './suspect-jobs.ts'

/** Bounds of a batch pool. */
export interface BatchPoolOptions {
  /** A batch is sealed at the first of these bounds, or when its insert is due, as soon as the lane inserts nothing. */
  readonly maxRows: number
  readonly maxBytes: number
  readonly maxJobs?: number
  readonly maxConcurrentInserts: number
  /** The longest time for which a batch waits for the inserts of its lane. It is inserted beside them then, if a slot is free. */
  readonly maxWaitMs: number
  /** Payload bytes that are fetched from Redis and not yet decoded. */
  readonly maxFetchedBytes: number
  /** Bounds of one job that is decoded into the open batch. */
  readonly jobLimits: JobLimits
}

/** Dependencies of a batch pool. */
interface BatchPoolDeps extends BatchSource {
  readonly store: PayloadStore
  readonly storer: Pick<BatchStorer, 'store' | 'split' | 'settle' | 'setAside'>
  readonly createRows: () => RowBatch
  /** The lane whose jobs are collected. */
  readonly lane: Lane
  /** The memory that the pools of the process share. */
  readonly memory: ColumnMemory
  /** Resources that the equal queues of the lane share. */
  readonly resources: LaneResources
  /** The order of the lanes of the process. */
  readonly expressFirst: ExpressFirst
  /** The times at which batches are inserted that are not full. */
  readonly pace: Pick<InsertPace, 'next'>
  readonly logger: Logger
  /** Called for each job with the time that decoding its requests took. */
  readonly onJobDecoded: (durationMs: number) => void
}

interface OpenBatch {
  readonly batch: Batch
  /** The insert slot, which is requested once, when the insert is due or the batch is full. */
  slot?: Promise<InsertSlot>
}

/**
 * Collects the jobs of one lane of a queue into named batches (`README.md`). One batch is open. Sealed batches wait
 * for an insert slot. While all slots are taken, the open batch grows to its bounds and then blocks decoding, so that an
 * unavailable store pauses the pool with bounded memory.
 */
export class BatchPool {
  readonly #deps: BatchPoolDeps
  readonly #options: BatchPoolOptions
  readonly #fetched: Budget
  readonly #slots: Budget
  readonly #rowsPool: RowsPool
  readonly #resumer: BatchResumer
  readonly #suspects: SuspectJobs
  #open: OpenBatch | undefined
  /** The time of the next insert, once it is reserved and until a batch is opened that uses it. */
  #reserved: Promise<void> | undefined
  /** Whether the batch before was full, so that it was not inserted at its time. */
  #wasFull = false
  #isClosing = false
  #decoding: Promise<unknown> = Promise.resolve()

  constructor(deps: BatchPoolDeps, options: BatchPoolOptions) {
    this.#deps = deps
    this.#options = options
    const { resources } = deps
    this.#fetched = resources.fetched
    this.#slots = resources.slots
    resources.join()
    this.#rowsPool = resources.rowsPool
    this.#resumer = new BatchResumer({ ...deps, rowsPool: this.#rowsPool, slots: this.#slots }, options)
    this.#suspects = new SuspectJobs({ ...deps, resumer: this.#resumer }, job => this.#runOfAnySize(job))
  }

  /**
   * Settles when the payload of the job is stored or dead-lettered, by this worker or another. Throws a TransientError
   * otherwise.
   */
  async process(job: TakenJob): Promise<void> {
    const process = () => (isSuspected(job) ? this.#suspects.process(job) : this.#runOfAnySize(job))
    return this.#deps.lane === 'express' ? this.#deps.expressFirst.run(process) : process()
  }

  async #runOfAnySize(job: TakenJob): Promise<void> {
    // A payload of this size has one request.
    const isLarge = job.payloadBytes > LARGE_BODY_BYTES || (await this.#run(job)) === 'large'
    if (isLarge) await this.#deps.memory.runLarge(job.lane, deadline => this.#run(job, deadline))
  }

  /**
   * Runs a job until its payload is settled, or returns `large` if it may only run as a large job. A large job has a
   * deadline until which memory must be available.
   */
  async #run(job: TakenJob, largeDeadline?: AbortSignal): Promise<'large' | undefined> {
    const { store } = this.#deps
    let resumed: string | undefined
    // Reserved while the payload is read, so that a job that is alone waits for both at the same time.
    if (this.#open === undefined) this.#reserved ??= this.#nextTime()
    for (;;) {
      const release = await this.#fetched.acquire(job.payloadBytes)
      let added: PooledJob | NotAdded
      try {
        const { batchId, payload } = await store.look(job.jobId)
        if (batchId !== null) {
          release()
          if (batchId === resumed) throw new TransientError(`batch ${batchId} names a job but cannot be formed again`)
          if ((await this.#resumer.resume(batchId, job, largeDeadline)) === 'large') return 'large'
          resumed = batchId
          continue
        }
        if (payload === null) return undefined
        const join = () => this.#join(job, payload, largeDeadline)
        added = await this.#decodeInTurn(join).finally(() => store.giveBack(payload))
      } finally {
        release()
      }
      if (added === 'large') return 'large'
      if (added === 'split') await this.#splitJob(job)
      else if ((await added.outcome) === 'stored') return undefined
    }
  }

  /** Inserts every batch at once from now on, because the pool takes no more jobs. */
  close(): void {
    this.#isClosing = true
    this.#deps.resources.close()
    if (this.#open !== undefined) this.#sealWhenFree(this.#open.batch.id)
  }

  /** Seals a batch if it is still open. It grows until an insert slot and the decoder are free. */
  #sealWhenFree(batchId: string): void {
    const due = this.#open
    if (due?.batch.id !== batchId) return
    const sealUnlessReplaced = async () => (due === this.#open ? this.#seal() : undefined)
    void this.#slotOf(due).then(() => this.#decodeInTurn(sealUnlessReplaced))
  }

  /** Runs one job at a time, so that the rows of a job are contiguous and a batch is never sealed in the middle of a job. */
  #decodeInTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#decoding.then(work)
    this.#decoding = turn.catch(() => undefined)
    return turn
  }

  /** Decodes a job into the open batch, unless it must be split or is large. */
  async #join(job: LockedJob, payload: Buffer, largeDeadline: AbortSignal | undefined): Promise<PooledJob | NotAdded> {
    const { maxBytes, maxRows, maxJobs = Number.POSITIVE_INFINITY, jobLimits } = this.#options
    const frames = decodePayload(payload)
    const isLarge = largeDeadline !== undefined
    const limits = isLarge ? { ...jobLimits, maxBodyBytes: Number.POSITIVE_INFINITY } : jobLimits
    const batch = await this.#openBatch(largeDeadline)
    const startedAt = performance.now()
    const added = await batch.add(job, frames, payload.length, limits).finally(() => {
      this.#rowsPool.settle(batch.rows, batch.letterBytes)
    })
    const decodedMs = performance.now() - startedAt
    this.#deps.onJobDecoded(decodedMs)
    const isFull = batch.rows.rows >= maxRows || batch.bytes >= maxBytes || batch.jobs.length >= maxJobs
    if (isLarge || isFull) await this.#sealFull()
    if (this.#deps.lane === 'bulk') await this.#deps.expressFirst.pauseBulk(decodedMs)
    return added
  }

  /**
   * Returns the open batch, with memory reserved for one more job. If the pool must wait for memory, its open batch is
   * sealed before, because nothing may hold memory while it waits for more.
   */
  async #openBatch(largeDeadline: AbortSignal | undefined): Promise<Batch> {
    const reserveBytes = largeDeadline === undefined ? JOB_RESERVE_BYTES : LARGE_JOB_RESERVE_BYTES
    if (this.#open !== undefined) {
      const { batch } = this.#open
      if (this.#rowsPool.tryReserve(batch.rows, batch.letterBytes + reserveBytes)) return batch
      await this.#sealFull()
    }
    const rows = await this.#rowsPool.take()
    await this.#rowsPool.reserve(rows, reserveBytes, largeDeadline).catch(error => {
      this.#rowsPool.giveBack(rows)
      throw error
    })
    const shards = await this.#deps.activeShards?.().catch(error => {
      this.#rowsPool.giveBack(rows)
      throw error
    })
    const batch = new Batch(this.#deps, rows, { shards })
    this.#open = { batch }
    // Only the id is kept until the insert is due, so that the letters of a batch that was full are not.
    const { id } = batch
    const due = this.#isClosing ? Promise.resolve() : (this.#reserved ?? this.#nextTime())
    this.#reserved = undefined
    void due.then(() => this.#sealWhenFree(id))
    return batch
  }

  async #splitJob(job: LockedJob): Promise<void> {
    const named = await nameAlone(this.#deps.store, job)
    if (named !== undefined) await this.#deps.storer.split(named)
  }

  /** Waits for the inserts of the lane, then for a slot: while ClickHouse is busy, fewer and larger inserts cost it less. */
  #slotOf(batch: OpenBatch): Promise<InsertSlot> {
    batch.slot ??= this.#deps.resources
      .untilIdle(this.#options.maxWaitMs)
      .then(() => new InsertSlot(this.#slots).hold())
    return batch.slot
  }

  /** Reserves the time of the next insert, and resolves when it has come. */
  #nextTime(): Promise<void> {
    const wasFull = this.#wasFull
    this.#wasFull = false
    return this.#deps.pace.next(wasFull)
  }

  async #sealFull(): Promise<void> {
    this.#wasFull = true
    await this.#seal()
  }

  /** Closes the open batch and stores it. Runs in the decoder's turn, so nothing is decoded while it waits for a slot. */
  async #seal(): Promise<void> {
    const sealed = this.#open
    if (sealed === undefined) return
    const slot = await this.#slotOf(sealed)
    this.#open = undefined
    void this.#storeSealed(sealed.batch, slot).finally(() => {
      slot.release()
      this.#rowsPool.giveBack(sealed.batch.rows)
    })
  }

  async #storeSealed(batch: Batch, slot: InsertSlot): Promise<void> {
    const { store, storer, logger } = this.#deps
    const { jobs } = batch
    if (jobs.length === 0) return
    try {
      await batch.rows.complete?.()
      const batchId = batch.id
      const formed = batch.formation()
      const conflicts = await store.nameBatch(batchId, jobs, formed)
      if (conflicts.size > 0) {
        // Another worker took some of these jobs meanwhile. All start over, and find the taken ones named or stored.
        logger.info({ batchId, conflicts: conflicts.size, jobs: jobs.length }, 'batch could not be named')
        for (const job of jobs) {
          if (conflicts.get(job.jobId) === 'lost') job.reject(lockLost())
          else job.resolve('again')
        }
        return
      }
      const named: NamedBatch = { batchId, jobIds: jobs.map(job => job.jobId), storedTables: [], formed }
      const isStored = await storer.store(named, batch, jobs, slot)
      for (const job of jobs) job.resolve(isStored ? 'stored' : 'again')
    } catch (error) {
      for (const job of jobs) job.reject(error)
    }
  }
}
