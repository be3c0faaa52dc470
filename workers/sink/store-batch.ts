import { randomUUID } from 'node:crypto'
import { clickHouseText } from '../../clickhouse/client.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import { decodePayload, encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { frameMoves, movesByWorkspace } from '../queue/moves.ts'
import {
  type Formation,
  isSameFormation,
  type NamedBatch,
  refusedOf,
  refusedWithin,
} from '../queue/payloads/batch-record.ts'
import type { LockedJob, Move, PayloadStore } from '../queue/payloads/payload-store.ts'
import { type AddJobs, addMovedJobs } from '../queue/process-frames.ts'
import type { BurnToken } from './another-version/divide-batch.ts'
import { recordedFormation, type SettleDeps, settleDifference } from './another-version/settle-difference.ts'
import type { Batch, BatchSource } from './batch.ts'
import { BlockInserter, type BlockInserterDeps, partIdOf, RefusedBatchError } from './block-inserter.ts'
import { formBatch } from './form-batch.ts'
import type { InsertSlot } from './pace/insert-slot.ts'
import { piecesOf } from './passed-on.ts'
import { NO_ROWS, type RowBatch } from './row-batch.ts'

/**
 * Batches leave requests for stacks out while the queue `symbolication` has less left of this than the surface has in it. So
 * a client that sends endless distinct stacks cannot fill Redis, nor take the room of other surfaces. The stacks are
 * requested again when the finding recurs.
 */
const SYMBOLICATION_BACKLOG_BYTES = 128 * MIB
const NO_RECORDS = Buffer.alloc(0)

/** Dependencies of storing a batch. */
export interface BatchStorerDeps extends BatchSource, BlockInserterDeps {
  readonly burnToken: BurnToken
  readonly store: PayloadStore
  readonly addJobs: AddJobs
  readonly onStored?: (batch: Batch, insertMs: number) => void
}

/** Inserts named batches into ClickHouse and isolates the requests that ClickHouse refuses. */
export class BatchStorer {
  readonly #deps: BatchStorerDeps
  readonly #inserter: BlockInserter
  readonly #settleDeps: SettleDeps

  constructor(deps: BatchStorerDeps) {
    this.#deps = deps
    this.#inserter = new BlockInserter(deps)
    this.#settleDeps = {
      ...deps,
      inserter: this.#inserter,
      finish: (...finished) => this.#finish(...finished),
      deadLetter: (...refused) => this.#deadLetter(...refused),
    }
  }

  /**
   * Stores a named batch, and retries until it is stored. The holders are the jobs whose locks this worker must hold.
   * Returns false if another worker has stored or split the batch. Its jobs must be looked at again then. If another
   * worker has formed the batch differently, the difference is resolved first.
   */
  async store(named: NamedBatch, batch: Batch, holders: readonly LockedJob[], slot?: InsertSlot): Promise<boolean> {
    const startedAt = performance.now()
    const formed = batch.formation()
    const recorded = await recordedFormation(this.#deps.store, named, formed)
    if (recorded === undefined) return false
    if (!isSameFormation(recorded, formed)) {
      const versions = { recordedBy: recorded.decoder, formedBy: formed.decoder }
      this.#deps.logger.warn({ batchId: named.batchId, ...versions }, 'batch was formed differently before')
      return this.settle(named, recorded, batch.rows, holders, slot)
    }
    try {
      await this.#inserter.insert(named, batch.tables(), holders, slot)
    } catch (error) {
      if (!(error instanceof RefusedBatchError)) throw error
      const { batchId, jobIds } = named
      this.#deps.logger.warn({ batchId, jobs: jobIds.length, ...errorFields(error.cause) }, 'batch was refused')
      this.#deps.logger.debug({ batchId, text: clickHouseText(error) }, 'batch was refused')
      // If no further table is stored, those that were may have the rows of a request that is refused only now.
      const isMoreStored = error.storedTables.length > named.storedTables.length
      const unstored = isMoreStored ? formed.refused : named.unstored
      return this.#isolate({ ...named, storedTables: error.storedTables, unstored }, batch, { holders, slot, error })
    }
    return this.#finish(named, batch, startedAt)
  }

  /**
   * Replaces the only job of a named batch by two jobs, each with half of its requests, and does nothing if another worker
   * has done so. The parts are already named, so the workers that take them resume their batches.
   */
  async split(named: NamedBatch, isCondemned = false): Promise<void> {
    const { store, addJobs, queue } = this.#deps
    const [whole = ''] = named.jobIds
    const payload = await store.payload(whole)
    if (payload === null) return
    const frames = decodePayload(payload)
    const middle = Math.ceil(frames.length / 2)
    const parts = [0, middle].map(first => {
      const part = frames.slice(first, first + middle)
      const jobId = newJobId()
      return {
        jobId,
        batchId: partIdOf(named, isCondemned, randomUUID()),
        payload: encodePayload(part),
        frames: part.length,
        storedTables: named.storedTables,
        unstored: { [jobId]: refusedWithin(named.unstored?.[whole], first, part.length) },
      }
    })
    const payloadBytes = payload.length
    store.giveBack(payload)
    await store.splitJob(named, payloadBytes, parts)
    // Needed even if there was nothing to split, since the connection may have sent the script twice. A job without a
    // payload does nothing.
    await addJobs(queue, parts)
  }

  /** Settles a batch that a worker with another outcome has formed, and that this or another worker has begun to settle. */
  settle(named: NamedBatch, recorded: Formation, rows: RowBatch, holders: readonly LockedJob[], slot?: InsertSlot) {
    return settleDifference(this.#settleDeps, { named, recorded, now: { rows }, holders, slot })
  }

  /**
   * Moves the requests of a named batch to the dead letters for this reason, without decoding them, unless an earlier worker
   * has stored them. If the tables do not have the rows of the same requests, the batch is divided instead.
   */
  setAside(named: NamedBatch, holders: readonly LockedJob[], reason: Reason): Promise<boolean> {
    const { formed: recorded } = named
    if (recorded === undefined) return this.#deadLetter(named, holders, reason)
    return settleDifference(this.#settleDeps, { named, recorded, now: { refuseAll: reason }, holders })
  }

  /** Deletes what is stored and moves what derives from it. Returns false if another worker has done so before. */
  async #finish(named: NamedBatch, batch: Batch, startedAt: number): Promise<boolean> {
    const { store, addJobs, onStored } = this.#deps
    const { frames, payloadBytes, shares } = batch.stats
    const moves = await this.#movesOf(named, batch)
    await batch.rows.stored?.()
    const { isFirst, leftOut } = await store.finishBatch(named, { frames, bytes: payloadBytes, shares }, moves)
    await addMovedJobs(addJobs, moves)
    if (!isFirst) return false
    // Requests that were left out are made again when their finding recurs.
    batch.rows.finished?.(new Set(leftOut.flatMap(({ shares }) => [...shares.keys()])))
    onStored?.(batch, performance.now() - startedAt)
    return true
  }

  /** The job ids of the moves derive from the batch, so that a repetition after a crash adds no second job. */
  async #movesOf({ batchId }: NamedBatch, batch: Batch): Promise<Move[]> {
    const { rows } = batch
    const requests = rows.stackRequests?.() ?? []
    const records = rows.passedOn?.bytes
    const exceptions = piecesOf(batch.exceptions, records?.bytes.subarray(0, records.length) ?? NO_RECORDS)
    return [
      ...batch.letterMoves(),
      ...(await this.#writeAhead('exceptions', batchId, exceptions)),
      ...(await this.#writeAhead('span-stats', batchId, rows.spanStats?.() ?? [])),
      ...movesByWorkspace('symbolication', `stacks-${batchId}`, requests, SYMBOLICATION_BACKLOG_BYTES),
    ]
  }

  /** Writes what the batch passes on to a queue, so that the script that finishes it moves references only. */
  async #writeAhead(queue: QueueName, batchId: string, pieces: Iterable<readonly PayloadFrame[]>): Promise<Move[]> {
    const moves: Move[] = []
    for (const frames of pieces) {
      const pieceMoves = frameMoves(queue, `${queue}-${batchId}-${moves.length}`, frames)
      for (const move of pieceMoves) moves.push(await this.#deps.store.writeAhead(move))
    }
    return moves
  }

  /** Halves a refused batch until the refused request is alone. Tables that have its rows are not written again. */
  async #isolate(
    named: NamedBatch,
    batch: Batch,
    { holders, slot, error }: { holders: readonly LockedJob[]; slot: InsertSlot | undefined; error: RefusedBatchError },
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
      unstored: refusedOf(named.unstored, jobIds),
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
  async #deadLetter(named: NamedBatch, holders: readonly LockedJob[], reason: Reason): Promise<boolean> {
    const startedAt = performance.now()
    const formed = await formBatch(this.#deps, named, NO_ROWS, { refuseAll: reason })
    if (!formed.ok) return false
    await this.#inserter.insert(named, formed.batch.tables(), holders, undefined)
    return this.#finish(named, formed.batch, startedAt)
  }
}

function refusedByClickHouse(error: Error): Reason {
  const text = clickHouseText(error)
  return { label: 'refused_by_clickhouse', detail: text === undefined ? error.message : `${error.message}: ${text}` }
}
