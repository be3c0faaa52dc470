import { randomUUID } from 'node:crypto'
import { clickHouseText } from '../../clickhouse/client.ts'
import { MIB } from '../../schemas/units.ts'
import { decodePayload, encodePayload } from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { movesByWorkspace } from '../queue/moves.ts'
import {
  type Formation,
  isSameFormation,
  labelAt,
  type NamedBatch,
  refusedOf,
  refusedWithin,
  STORED_IN_PART,
} from '../queue/payloads/batch-record.ts'
import type { HeldJob, Move, PayloadStore } from '../queue/payloads/payload-store.ts'
import { type AddJobs, addMovedJobs } from '../queue/process-frames.ts'
import { divideBatch, type FenceInsert, findLanded, type Landed } from './another-version/divide-batch.ts'
import type { Batch, BatchSource } from './batch.ts'
import { BlockInserter, type BlockInserterDeps, partIdOf, RefusedBatchError } from './block-inserter.ts'
import { formBatch } from './form-batch.ts'
import type { InsertSlot } from './pace/insert-slot.ts'
import { NO_ROWS, type RowBatch, type TableBlock } from './row-batch.ts'

/**
 * Batches leave requests for stacks out while the queue `symbolication` has less left of this than the surface has in it. So
 * a client that sends endless distinct stacks cannot fill Redis, nor take the room of other surfaces. The stacks are
 * requested again when the finding recurs.
 */
const SYMBOLICATION_BACKLOG_BYTES = 128 * MIB

/** Dependencies of storing a batch. */
export interface BatchStorerDeps extends BatchSource, BlockInserterDeps {
  readonly fenceInsert: FenceInsert
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
   * Returns false if another worker has stored or split the batch. Its jobs must be looked at again then. If another
   * worker has formed the batch differently, the difference is resolved first.
   */
  async store(named: NamedBatch, batch: Batch, holders: readonly HeldJob[], slot?: InsertSlot): Promise<boolean> {
    const startedAt = performance.now()
    const formed = batch.formation()
    const recorded = await this.#recorded(named, formed)
    if (recorded === undefined) return false
    if (!isSameFormation(recorded, formed)) {
      const versions = { recordedBy: recorded.decoder, formedBy: formed.decoder }
      this.#deps.logger.warn({ batchId: named.batchId, ...versions }, 'batch was formed differently before')
      const fenced = await this.#fence(named, recorded)
      return fenced !== undefined && this.resolve(fenced, batch.rows, holders, slot)
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

  /**
   * Resolves the difference between what another worker has made of a batch and what this one makes of it. `named` has the
   * id of the other worker's inserts as `fencedId`: that worker can no longer finish the batch. If all inserts have landed,
   * the batch is finished as they are, because receipts report that outcome. Else its requests are divided into parts.
   */
  async resolve(named: NamedBatch, rows: RowBatch, holders: readonly HeldJob[], slot?: InsertSlot): Promise<boolean> {
    const startedAt = performance.now()
    const landed = await findLanded(this.#deps, named)
    if (landed === undefined) return false
    rows.reset()
    const again = await formBatch(this.#deps, named, rows, { id: named.fencedId, published: named.formed?.refused })
    if (!again.ok) return false
    await this.#completeViews(named, landedBlocks(again.batch, landed), holders, slot)
    return landed.isWhole ? this.#finish(named, again.batch, startedAt) : divideBatch(this.#deps, named, landed)
  }

  /**
   * Repeats inserts that have landed, under their tokens. It adds nothing to their tables, but ClickHouse may have ended
   * before the views of a table had its rows.
   */
  async #completeViews(
    { fencedId = '', jobIds }: NamedBatch,
    blocks: readonly TableBlock[],
    holders: readonly HeldJob[],
    slot: InsertSlot | undefined,
  ): Promise<void> {
    try {
      await this.#inserter.insert({ batchId: fencedId, jobIds, storedTables: [] }, blocks, holders, slot)
    } catch (error) {
      if (!(error instanceof RefusedBatchError)) throw error
      this.#deps.logger.warn({ batchId: fencedId, ...errorFields(error.cause) }, 'views could not be completed')
    }
  }

  /**
   * Moves the requests of a named batch to the dead letters for this reason, without decoding them, unless an earlier worker
   * has stored them. If the tables do not have the rows of the same requests, the batch is divided instead.
   */
  async setAside(named: NamedBatch, holders: readonly HeldJob[], reason: Reason): Promise<boolean> {
    const { formed, jobIds, storedTables } = named
    if (formed === undefined) return this.#deadLetter(named, holders, reason)
    const fenced = named.fencedId === undefined ? await this.#fence(named, formed) : named
    const landed = fenced && (await findLanded(this.#deps, fenced))
    if (fenced === undefined || landed === undefined) return false
    if (landed.isWhole) {
      const options = { id: fenced.fencedId, published: formed.refused, refuseAll: reason }
      const again = await formBatch(this.#deps, fenced, NO_ROWS, options)
      if (!again.ok) return false
      await this.#completeViews(fenced, landedBlocks(again.batch, landed), holders, undefined)
      return this.#finish(fenced, again.batch, performance.now())
    }
    // The letters of all requests name the same tables. If that is not true, the parts are processed on their own.
    const isMoreStored = landed.tables.size > 0
    const isAlike = [...landed.days].every(([table, { size }]) => size === 0 || landed.tables.has(table))
    if (!isAlike || (isMoreStored && storedTables.length > 0)) return divideBatch(this.#deps, fenced, landed)
    // A request that is refused now may have rows in tables that were stored before.
    const stored = isMoreStored
      ? { storedTables: [...landed.tables], unstored: formed.refused }
      : { storedTables, unstored: named.unstored }
    const rest = { batchId: randomUUID(), jobIds, ...stored }
    return (await this.#deps.store.splitBatch(fenced.batchId, [rest])) && this.#deadLetter(rest, holders, reason)
  }

  /** Returns what is recorded of the batch before its first insert, or undefined if it is finished or split. */
  async #recorded(named: NamedBatch, formed: Formation): Promise<Formation | undefined> {
    if (named.formed !== undefined) return named.formed
    if (!gainsRows(named, formed)) return this.#deps.store.describeBatch(named, formed)
    return { ...formed, tables: {}, refused: named.unstored ?? {} }
  }

  /** Gives the batch another id, so that no other worker can finish it. Returns undefined if one has done so before. */
  async #fence({ batchId: fencedId, ...record }: NamedBatch, formed: Formation): Promise<NamedBatch | undefined> {
    const fenced = { ...record, batchId: randomUUID(), formed, fencedId }
    return (await this.#deps.store.splitBatch(fencedId, [fenced])) ? fenced : undefined
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
    batch.rows.finished?.(new Set(leftOut.flatMap(({ shares }) => [...shares.keys()])))
    onStored?.(batch, performance.now() - startedAt)
    return true
  }

  /** The job ids of the moves derive from the batch, so that a repetition after a crash adds no second job. */
  #movesOf({ batchId }: NamedBatch, batch: Batch): Move[] {
    const requests = batch.rows.stackRequests?.() ?? []
    return [
      ...batch.letterMoves(),
      ...movesByWorkspace('symbolication', `stacks-${batchId}`, requests, SYMBOLICATION_BACKLOG_BYTES),
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
  async #deadLetter(named: NamedBatch, holders: readonly HeldJob[], reason: Reason): Promise<boolean> {
    const startedAt = performance.now()
    const formed = await formBatch(this.#deps, named, NO_ROWS, { refuseAll: reason })
    if (!formed.ok) return false
    await this.#inserter.insert(named, formed.batch.tables(), holders, undefined)
    return this.#finish(named, formed.batch, startedAt)
  }
}

/** Returns the blocks of the tables whose inserts have landed. */
function landedBlocks(batch: Batch, { tables }: Landed): TableBlock[] {
  return batch.tables().filter(({ table }) => tables.has(table))
}

function refusedByClickHouse(error: Error): Reason {
  const text = clickHouseText(error)
  return { label: 'refused_by_clickhouse', detail: text === undefined ? error.message : `${error.message}: ${text}` }
}

/** Returns whether a request has rows now that the tables which are stored do not contain. */
function gainsRows({ storedTables, unstored, jobIds }: NamedBatch, { refused }: Formation): boolean {
  if (storedTables.length === 0) return false
  return jobIds.some(jobId =>
    Object.entries(unstored?.[jobId] ?? {}).some(([before, runs]) =>
      runs.some((first, i) => i % 2 === 0 && isAnyGained(refused, jobId, first, runs[i + 1] as number, before)),
    ),
  )
}

function isAnyGained(
  refused: Formation['refused'],
  jobId: string,
  first: number,
  last: number,
  before: string,
): boolean {
  for (let index = first; index <= last; index++) {
    const now = labelAt(refused, jobId, index)
    if (now === undefined || (now === STORED_IN_PART && before !== STORED_IN_PART)) return true
  }
  return false
}
