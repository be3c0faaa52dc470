import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { QueueName } from '../../schemas/queues/names.ts'
import { retryDelayMs } from '../../shared/concurrency/retry.ts'
import { decodePayload, encodePayload } from '../../shared/queue/payload-frame.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { describeError, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { HeldJob, Move, NamedBatch, NewPayload, PayloadStore } from '../queue/payload-store.ts'
import { formBatch } from './form-batch.ts'
import { type Batch, type BatchSource, deadLetterPayload } from './open-batch.ts'
import type { RowBatch, TableBlock } from './row-batch.ts'

/**
 * While symbolication is so far behind, batches leave their requests out: whoever makes up stacks without end must not
 * fill Redis with them. A finding that is thrown again is asked for again.
 */
const SYMBOLICATION_BACKLOG_BYTES = 128 * 1024 * 1024

/** Inserts one block under a token: repeated with the same token, it adds nothing. Throws Permanent- or TransientError. */
export type InsertBlock = (block: TableBlock, deduplicationToken: string) => Promise<void>

export interface BatchStorer {
  /**
   * Stores a named batch for as long as it takes. The holders are the jobs whose locks this worker answers for.
   * False: it was stored or split by another worker meanwhile, and its jobs are to be looked at anew.
   */
  store(named: NamedBatch, batch: Batch, holders: readonly HeldJob[]): Promise<boolean>
  /** Replaces the only job of a named batch by two, each with half of its requests. Nothing if another worker did so. */
  split(named: NamedBatch): Promise<void>
}

export interface BatchStorerDeps extends BatchSource {
  readonly store: PayloadStore
  readonly insert: InsertBlock
  /** Adds jobs for payloads that are in Redis already; jobs that exist are left alone. */
  readonly addJobs: (queue: QueueName, payloads: readonly NewPayload[]) => Promise<void>
  readonly logger: Logger
  /** Ends the waiting for a store that is away; the batch stays named and is taken up by the next worker. */
  readonly stopping: AbortSignal
  readonly onStored?: (batch: Batch, insertMs: number) => void
  /** A sign of life: a batch waits for its store, but this worker is at it. */
  readonly onAttempt?: () => void
}

/** A batch that ClickHouse refuses for its content, and the tables that took theirs before. */
class RefusedBatchError extends Error {
  override readonly name = 'RefusedBatchError'
  readonly storedTables: readonly string[]
  constructor(storedTables: readonly string[], cause: PermanentError) {
    super(cause.message, { cause })
    this.storedTables = storedTables
  }
}

export function createBatchStorer(deps: BatchStorerDeps): BatchStorer {
  const { store, logger } = deps

  async function storeBatch(named: NamedBatch, batch: Batch, holders: readonly HeldJob[]): Promise<boolean> {
    const startedAt = performance.now()
    try {
      await insertTables(named, batch, holders)
    } catch (error) {
      if (!(error instanceof RefusedBatchError)) throw error
      logger.warn({ batchId: named.batchId, jobs: named.jobIds.length, error: error.message }, 'batch was refused')
      return isolate({ ...named, storedTables: error.storedTables }, batch, holders, error)
    }
    if (!(await finish(named, batch))) return false
    deps.onStored?.(batch, performance.now() - startedAt)
    return true
  }

  async function insertTables(named: NamedBatch, batch: Batch, holders: readonly HeldJob[]): Promise<void> {
    const stored = [...named.storedTables]
    for (const block of batch.tables()) {
      if (block.rows === 0 || stored.includes(block.table)) continue
      try {
        await insertPatiently(block, `${named.batchId}:${block.table}`, holders)
      } catch (error) {
        throw error instanceof PermanentError ? new RefusedBatchError(stored, error) : error
      }
      stored.push(block.table)
    }
  }

  /** The one place that retries: the batch keeps its slot, so the pool pauses while its store is away. */
  async function insertPatiently(block: TableBlock, token: string, holders: readonly HeldJob[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      // This worker may have been stopped for an hour, and its jobs taken over.
      if (!(await store.holds(holders))) throw new TransientError('the locks of the batch were lost')
      deps.onAttempt?.()
      try {
        return await deps.insert(block, token)
      } catch (error) {
        if (error instanceof PermanentError) throw error
        const waitMs = retryDelayMs(attempt)
        if (attempt === 1 || attempt % 10 === 0) {
          logger.warn(
            { table: block.table, attempt, waitMs, error: describeError(error) },
            'insert failed, will be repeated',
          )
        }
        await delay(waitMs, undefined, { signal: deps.stopping }).catch(cause => {
          throw new TransientError('stopped while the store was away', { cause })
        })
      }
    }
  }

  async function finish(named: NamedBatch, batch: Batch): Promise<boolean> {
    const done = { frames: batch.stats.frames, bytes: batch.stats.payloadBytes }
    const moves = movesOf(named, batch)
    const finished = await store.finishBatch(named, done, moves)
    for (const move of moves) await deps.addJobs(move.queue, [move])
    if (finished) batch.rows.finished?.()
    return finished
  }

  /** Their ids derive from the batch, so that a repeat after a crash adds no second job. */
  function movesOf({ batchId }: NamedBatch, { refused, rows }: Batch): Move[] {
    const moves: Move[] = []
    if (refused.length > 0) {
      moves.push({ queue: 'dead-letters', ...deadLetterPayload(deps.queue, `dead-${batchId}`, refused) })
    }
    const requests = rows.stackRequests?.() ?? []
    if (requests.length > 0) {
      moves.push({
        queue: 'symbolication',
        jobId: `stacks-${batchId}`,
        payload: encodePayload(requests),
        frames: requests.length,
        backlogLimitBytes: SYMBOLICATION_BACKLOG_BYTES,
      })
    }
    return moves
  }

  /** Halves a refused batch until the guilty request stands alone; the tables that have its rows are not written again. */
  async function isolate(
    named: NamedBatch,
    batch: Batch,
    holders: readonly HeldJob[],
    error: RefusedBatchError,
  ): Promise<boolean> {
    const [only] = batch.jobs
    if (batch.jobs.length === 1 && only !== undefined) {
      if (only.frames === 1) {
        return deadLetter(named, holders, `refused_by_clickhouse: ${error.message}`.slice(0, 1_000))
      }
      await split(named)
      return true
    }
    const middle = Math.ceil(named.jobIds.length / 2)
    const halves = [named.jobIds.slice(0, middle), named.jobIds.slice(middle)].map(jobIds => ({
      batchId: randomUUID(),
      jobIds,
      storedTables: named.storedTables,
    }))
    if (!(await store.splitBatch(named.batchId, halves))) return false
    let allStored = true
    for (const half of halves) {
      batch.rows.reset()
      const again = await formBatch(deps, half.jobIds, batch.rows)
      if (!again.ok || !(await storeBatch(half, again.batch, holders))) allStored = false
    }
    return allStored
  }

  /** Stores nothing of the job but its log, and moves its one request to the dead letters. */
  async function deadLetter(named: NamedBatch, holders: readonly HeldJob[], reason: string): Promise<boolean> {
    const startedAt = performance.now()
    const formed = await formBatch(deps, named.jobIds, refuseAll(reason))
    if (!formed.ok) return false
    const { batch } = formed
    await insertTables(named, batch, holders)
    if (!(await finish(named, batch))) return false
    deps.onStored?.(batch, performance.now() - startedAt)
    return true
  }

  /** The parts are jobs of their own, already named; whoever takes them resumes their batches. */
  async function split(named: NamedBatch): Promise<void> {
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
    // Also when it answers that there was nothing to split: the connection may have sent it twice. Jobs without a
    // payload do nothing.
    await deps.addJobs(deps.queue, parts)
  }

  return { store: storeBatch, split }
}

/** A batch that takes no row. */
function refuseAll(reason: string): RowBatch {
  return { rows: 0, bytes: 0, append: () => ({ ok: false, reason }), tables: () => [], reset() {} }
}
