import { randomUUID } from 'node:crypto'
import { clickHouseText } from '../../clickhouse/client.ts'
import { decodePayload, encodePayload } from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { frameMoves } from '../queue/moves.ts'
import type { HeldJob, Move, NamedBatch, PayloadStore } from '../queue/payloads/payload-store.ts'
import { type AddJobs, addMovedJobs } from '../queue/process-frames.ts'
import type { Batch, BatchSource } from './batch.ts'
import { BlockInserter, type BlockInserterDeps, partIdOf, RefusedBatchError } from './block-inserter.ts'
import { formBatch } from './form-batch.ts'
import type { InsertSlot } from './insert-slot.ts'
import type { RowBatch } from './row-batch.ts'

/**
 * Above this backlog of the queue `symbolication`, batches leave their requests out, so that a client that sends endless
 * distinct stacks cannot fill Redis. They are requested again when the finding recurs.
 */
const SYMBOLICATION_BACKLOG_BYTES = 128 * 1024 * 1024

/** Dependencies of storing a batch. */
export interface BatchStorerDeps extends BatchSource, BlockInserterDeps {
  readonly store: PayloadStore
  readonly addJobs: AddJobs
  readonly onStored?: (batch: Batch, insertMs: number) => void
}

/** Inserts named batches into ClickHouse and isolates the requests that ClickHouse refuses. */
export class BatchStorer {
  readonly #deps: BatchStorerDeps
  readonly #inserter: BlockInserter

  constructor(deps: BatchStorerDeps) {
    this.#deps = deps
    this.#inserter = new BlockInserter(deps)
  }

  /**
   * Stores a named batch, and retries until it is stored. The holders are the jobs whose locks this worker must hold.
   * Returns false if another worker has stored or split the batch. Its jobs must be looked at again then.
   */
  async store(named: NamedBatch, batch: Batch, holders: readonly HeldJob[], slot?: InsertSlot): Promise<boolean> {
    const startedAt = performance.now()
    try {
      await this.#inserter.insert(named, batch.tables(), holders, slot)
    } catch (error) {
      if (!(error instanceof RefusedBatchError)) throw error
      const { batchId, jobIds } = named
      this.#deps.logger.warn({ batchId, jobs: jobIds.length, ...errorFields(error.cause) }, 'batch was refused')
      this.#deps.logger.debug({ batchId, text: clickHouseText(error) }, 'batch was refused')
      return this.#isolate({ ...named, storedTables: error.storedTables }, batch, { holders, slot, error })
    }
    return this.#finish(named, batch, startedAt)
  }

  /**
   * Replaces the only job of a named batch by two jobs, each with half of its requests, and does nothing if another worker
   * has done so. The parts are already named, so the workers that take them resume their batches.
   */
  async split(named: NamedBatch, isCondemned = false): Promise<void> {
    const { store, addJobs, queue } = this.#deps
    const payload = await store.payload(named.jobIds[0] ?? '')
    if (payload === null) return
    const frames = decodePayload(payload)
    const middle = Math.ceil(frames.length / 2)
    const parts = [frames.slice(0, middle), frames.slice(middle)].map(part => ({
      jobId: newJobId(),
      batchId: partIdOf(named, isCondemned, randomUUID()),
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

  /** Deletes what is stored and moves what derives from it. Returns false if another worker has done so before. */
  async #finish(named: NamedBatch, batch: Batch, startedAt: number): Promise<boolean> {
    const { store, addJobs, onStored } = this.#deps
    const { frames, payloadBytes, shares } = batch.stats
    const moves = this.#movesOf(named, batch)
    const { isFirst, leftOut } = await store.finishBatch(named, { frames, bytes: payloadBytes, shares }, moves)
    await addMovedJobs(addJobs, moves)
    if (!isFirst) return false
    // Requests that were left out are made again when their finding recurs.
    if (leftOut.every(({ queue }) => queue !== 'symbolication')) batch.rows.finished?.()
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
    { holders, slot, error }: { holders: readonly HeldJob[]; slot: InsertSlot | undefined; error: RefusedBatchError },
  ): Promise<boolean> {
    const [only] = batch.jobs
    if (batch.jobs.length === 1 && only !== undefined) {
      if (only.frames === 1) return this.#deadLetter(named, holders, refusedByClickHouse(error))
      await this.split(named, error.isCondemned)
      return true
    }
    const middle = Math.ceil(named.jobIds.length / 2)
    const halves = [named.jobIds.slice(0, middle), named.jobIds.slice(middle)].map(jobIds => ({
      batchId: partIdOf(named, error.isCondemned, randomUUID()),
      jobIds,
      storedTables: named.storedTables,
    }))
    if (!(await this.#deps.store.splitBatch(named.batchId, halves))) return false
    let allStored = true
    for (const half of halves) {
      batch.rows.reset()
      const again = await formBatch(this.#deps, half, batch.rows)
      if (!again.ok || !(await this.store(half, again.batch, holders, slot))) allStored = false
    }
    return allStored
  }

  /** Stores only the log of the jobs, and moves all their requests to the dead letters. */
  async #deadLetter(named: NamedBatch, holders: readonly HeldJob[], reason: Reason): Promise<boolean> {
    const startedAt = performance.now()
    const refuseAll = { reason, storedTables: named.storedTables }
    const formed = await formBatch(this.#deps, named, NO_ROWS, { refuseAll })
    if (!formed.ok) return false
    await this.#inserter.insert(named, formed.batch.tables(), holders, undefined)
    return this.#finish(named, formed.batch, startedAt)
  }
}

function refusedByClickHouse(error: Error): Reason {
  const text = clickHouseText(error)
  return { label: 'refused_by_clickhouse', detail: text === undefined ? error.message : `${error.message}: ${text}` }
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
