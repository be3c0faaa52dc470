import { randomUUID } from 'node:crypto'
import { type RetryDeps, retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { decodePayload, encodePayload } from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { errorFields, PermanentError } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { frameMoves } from '../queue/moves.ts'
import type { HeldJob, Move, NamedBatch, PayloadStore } from '../queue/payload-store.ts'
import { type AddJobs, addMovedJobs } from '../queue/process-frames.ts'
import type { Batch, BatchSource } from './batch.ts'
import { formBatch } from './form-batch.ts'
import type { RowBatch, TableBlock } from './row-batch.ts'

/**
 * Above this backlog of the queue `symbolication`, batches leave their requests out, so that a client that sends endless
 * distinct stacks cannot fill Redis. They are requested again when the finding recurs.
 */
const SYMBOLICATION_BACKLOG_BYTES = 128 * 1024 * 1024

/** Inserts one block. Repeated with the same token, it adds nothing. Throws a PermanentError or a TransientError. */
export type InsertBlock = (block: TableBlock, deduplicationToken: string) => Promise<void>

/** Dependencies of storing a batch. */
export interface BatchStorerDeps extends BatchSource, Omit<RetryDeps, 'holdsLock'> {
  readonly store: PayloadStore
  readonly insert: InsertBlock
  readonly addJobs: AddJobs
  readonly onStored?: (batch: Batch, insertMs: number) => void
}

/** ClickHouse refused the content of a batch. Names the tables that had accepted their blocks before. */
class RefusedBatchError extends Error {
  override readonly name = 'RefusedBatchError'
  readonly storedTables: readonly string[]

  constructor(storedTables: readonly string[], cause: PermanentError) {
    super(cause.message, { cause })
    this.storedTables = storedTables
  }
}

/** Inserts named batches into ClickHouse and isolates the requests that ClickHouse refuses. */
export class BatchStorer {
  readonly #deps: BatchStorerDeps

  constructor(deps: BatchStorerDeps) {
    this.#deps = deps
  }

  /**
   * Stores a named batch, and retries until it is stored. The holders are the jobs whose locks this worker must hold.
   * Returns false if another worker has stored or split the batch. Its jobs must be looked at again then.
   */
  async store(named: NamedBatch, batch: Batch, holders: readonly HeldJob[]): Promise<boolean> {
    const startedAt = performance.now()
    try {
      await this.#insertTables(named, batch, holders)
    } catch (error) {
      if (!(error instanceof RefusedBatchError)) throw error
      const { batchId, jobIds } = named
      this.#deps.logger.warn({ batchId, jobs: jobIds.length, ...errorFields(error.cause) }, 'batch was refused')
      return this.#isolate({ ...named, storedTables: error.storedTables }, batch, holders, error)
    }
    return this.#finish(named, batch, startedAt)
  }

  /**
   * Replaces the only job of a named batch by two jobs, each with half of its requests, and does nothing if another worker
   * has done so. The parts are already named, so the workers that take them resume their batches.
   */
  async split(named: NamedBatch): Promise<void> {
    const { store, addJobs, queue } = this.#deps
    const payload = await store.payload(named.jobIds[0] ?? '')
    if (payload === null) return
    const frames = decodePayload(payload)
    const middle = Math.ceil(frames.length / 2)
    const parts = [frames.slice(0, middle), frames.slice(middle)].map(part => ({
      jobId: newJobId(),
      batchId: randomUUID(),
      payload: encodePayload(part),
      frames: part.length,
    }))
    const payloadBytes = payload.length
    store.giveBack(payload)
    await store.splitJob(named, payloadBytes, parts)
    // Needed even if there was nothing to split, since the connection may have sent the script twice. A job without a
    // payload does nothing.
    await addJobs(queue, parts)
  }

  /** Moves all requests of a named batch to the dead letters for this reason, without decoding them. */
  setAside(named: NamedBatch, holders: readonly HeldJob[], reason: Reason): Promise<boolean> {
    return this.#deadLetter(named, holders, reason)
  }

  /** Inserts the blocks in turn. The batch keeps its slot while it retries, so the pool pauses while ClickHouse is unavailable. */
  async #insertTables(named: NamedBatch, batch: Batch, holders: readonly HeldJob[]): Promise<void> {
    const retryDeps = { ...this.#deps, holdsLock: () => this.#deps.store.holdsLocks(holders) }
    const stored = [...named.storedTables]
    for (const block of batch.tables()) {
      if (block.rows === 0 || stored.includes(block.table)) continue
      const token = `${named.batchId}:${block.table}`
      try {
        await retryUntilStopped(retryDeps, `insert into ${block.table}`, () => this.#deps.insert(block, token))
      } catch (error) {
        throw error instanceof PermanentError ? new RefusedBatchError(stored, error) : error
      }
      stored.push(block.table)
    }
  }

  /** Deletes what is stored and moves what derives from it. Returns false if another worker has done so before. */
  async #finish(named: NamedBatch, batch: Batch, startedAt: number): Promise<boolean> {
    const { store, addJobs, onStored } = this.#deps
    const { frames, payloadBytes, shares } = batch.stats
    const moves = this.#movesOf(named, batch)
    const { isFirst } = await store.finishBatch(named, { frames, bytes: payloadBytes, shares }, moves)
    await addMovedJobs(addJobs, moves)
    if (!isFirst) return false
    batch.rows.finished?.()
    onStored?.(batch, performance.now() - startedAt)
    return true
  }

  /** The job ids of the moves derive from the batch, so that a repetition after a crash adds no second job. */
  #movesOf({ batchId }: NamedBatch, { letters, rows }: Batch): Move[] {
    const requests = rows.stackRequests?.() ?? []
    return [
      ...letters.moves(),
      ...frameMoves('symbolication', `stacks-${batchId}`, requests, SYMBOLICATION_BACKLOG_BYTES),
    ]
  }

  /** Halves a refused batch until the refused request is alone. Tables that have its rows are not written again. */
  async #isolate(
    named: NamedBatch,
    batch: Batch,
    holders: readonly HeldJob[],
    error: RefusedBatchError,
  ): Promise<boolean> {
    const [only] = batch.jobs
    if (batch.jobs.length === 1 && only !== undefined) {
      if (only.frames === 1) return this.#deadLetter(named, holders, refusedByClickHouse(error))
      await this.split(named)
      return true
    }
    const middle = Math.ceil(named.jobIds.length / 2)
    const halves = [named.jobIds.slice(0, middle), named.jobIds.slice(middle)].map(jobIds => ({
      batchId: randomUUID(),
      jobIds,
      storedTables: named.storedTables,
    }))
    if (!(await this.#deps.store.splitBatch(named.batchId, halves))) return false
    let allStored = true
    for (const half of halves) {
      batch.rows.reset()
      const again = await formBatch(this.#deps, half, batch.rows)
      if (!again.ok || !(await this.store(half, again.batch, holders))) allStored = false
    }
    return allStored
  }

  /** Stores only the log of the jobs, and moves all their requests to the dead letters. */
  async #deadLetter(named: NamedBatch, holders: readonly HeldJob[], reason: Reason): Promise<boolean> {
    const startedAt = performance.now()
    const refuseAll = { reason, storedTables: named.storedTables }
    const formed = await formBatch(this.#deps, named, NO_ROWS, { refuseAll })
    if (!formed.ok) return false
    await this.#insertTables(named, formed.batch, holders)
    return this.#finish(named, formed.batch, startedAt)
  }
}

function refusedByClickHouse(error: Error): Reason {
  return { label: 'refused_by_clickhouse', detail: error.message }
}

/** The rows of a batch that refuses every request. */
const NO_ROWS: RowBatch = {
  rows: 0,
  bytes: 0,
  capacityBytes: 0,
  append: () => ({ ok: true, rows: 0, rejected: {} }),
  markJob() {},
  rewindJob() {},
  tables: () => [],
  reset() {},
  shrink() {},
}
