import { randomUUID } from 'node:crypto'
import { errorFields } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { Reason } from '../../../shared/runtime/reason.ts'
import { type Formation, labelAt, type NamedBatch, STORED_IN_PART } from '../../queue/payloads/batch-record.ts'
import type { LockedJob, PayloadStore } from '../../queue/payloads/payload-store.ts'
import type { AddJobs } from '../../queue/process-frames.ts'
import type { Batch, BatchSource } from '../batch.ts'
import { type BlockInserter, RefusedBatchError } from '../block-inserter.ts'
import { formBatch } from '../form-batch.ts'
import type { InsertSlot } from '../pace/insert-slot.ts'
import { NO_ROWS, type RowBatch, type TableBlock } from '../row-batch.ts'
import { type BurnToken, divideBatch, findLanded, type Landed } from './divide-batch.ts'

/** Dependencies of settling a difference. */
export interface SettleDeps extends BatchSource {
  readonly store: PayloadStore
  readonly burnToken: BurnToken
  readonly inserter: Pick<BlockInserter, 'insert'>
  readonly addJobs: AddJobs
  readonly logger: Logger
  /** Deletes what is stored and moves what derives from it. */
  readonly finish: (named: NamedBatch, batch: Batch, startedAt: number) => Promise<boolean>
  /** Moves all requests of a batch to the dead letters. */
  readonly deadLetter: (named: NamedBatch, holders: readonly LockedJob[], reason: Reason) => Promise<boolean>
}

/**
 * Returns what is recorded of a batch before its first insert, and records it if nothing is. Returns undefined if the batch is
 * finished or divided.
 */
export async function recordedFormation(
  store: Pick<PayloadStore, 'describeBatch'>,
  named: NamedBatch,
  formed: Formation,
): Promise<Formation | undefined> {
  if (named.formed !== undefined) return named.formed
  if (!gainsRows(named, formed)) return store.describeBatch(named, formed)
  return { ...formed, tables: {}, refused: named.unstored ?? {} }
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

/** A batch that another worker has formed, and what becomes of its requests now. */
interface Difference {
  /** As it is recorded. With a `burnedId`, a worker has begun to settle it and was interrupted. */
  readonly named: NamedBatch
  /** The formation that the other worker was about to insert. */
  readonly recorded: Formation
  /** The rows that this worker makes of the requests, or why all become dead letters without being decoded. */
  readonly now: { readonly rows: RowBatch } | { readonly refuseAll: Reason }
  /** The jobs whose locks this worker must hold. */
  readonly holders: readonly LockedJob[]
  readonly slot?: InsertSlot | undefined
}

/**
 * Settles a batch whose inserts were sent, or may still be sent, by a worker that makes other rows of its requests: its rows
 * would be lost under tokens that ClickHouse knows. Gives the batch another id, so that the other worker can no longer
 * finish it, and burns the tokens of its inserts, so that none lands any more. If all have landed, the batch is finished as
 * they are, because receipts report that outcome. Else its requests are divided into parts with tokens of their own.
 *
 * Returns false if another worker has finished or divided the batch meanwhile: its jobs must be looked at again.
 */
export async function settleDifference(deps: SettleDeps, difference: Difference): Promise<boolean> {
  const { recorded, now, holders } = difference
  const startedAt = performance.now()
  const named = await takeOver(deps.store, difference)
  const landed = named && (await findLanded(deps, named))
  if (named === undefined || landed === undefined) return false
  const refuseAll = 'refuseAll' in now ? now.refuseAll : undefined
  if (refuseAll !== undefined && !landed.isWhole) {
    const rest = undividedRest(named, recorded, landed)
    if (rest === undefined) return divideBatch(deps, named, landed)
    return (await deps.store.splitBatch(named.batchId, [rest])) && deps.deadLetter(rest, holders, refuseAll)
  }
  const rows = 'rows' in now ? now.rows : NO_ROWS
  rows.reset()
  const again = await formBatch(deps, named, rows, { id: named.burnedId, published: recorded, refuseAll })
  if (!again.ok) return false
  await completeViews(deps, named, landedBlocks(again.batch, landed), difference)
  return landed.isWhole ? deps.finish(named, again.batch, startedAt) : divideBatch(deps, named, landed)
}

/** Gives the batch another id, unless it has one. Returns undefined if another worker has done so before. */
async function takeOver(store: PayloadStore, { named, recorded }: Difference): Promise<NamedBatch | undefined> {
  if (named.burnedId !== undefined) return named
  const { batchId: burnedId, ...record } = named
  const taken = { ...record, batchId: randomUUID(), formed: recorded, burnedId }
  return (await store.splitBatch(burnedId, [taken])) ? taken : undefined
}

/**
 * Repeats inserts that have landed, under their tokens. It adds nothing to their tables, but ClickHouse may have ended
 * before the views of a table had its rows.
 */
async function completeViews(
  { inserter, logger }: SettleDeps,
  { burnedId = '', jobIds }: NamedBatch,
  blocks: readonly TableBlock[],
  { holders, slot }: Difference,
): Promise<void> {
  try {
    await inserter.insert({ batchId: burnedId, jobIds, storedTables: [] }, blocks, holders, slot)
  } catch (error) {
    if (!(error instanceof RefusedBatchError)) throw error
    logger.warn({ batchId: burnedId, ...errorFields(error.cause) }, 'views could not be completed')
  }
}

/** Returns the blocks of the tables whose inserts have landed. */
function landedBlocks(batch: Batch, { tables }: Landed): TableBlock[] {
  return batch.tables().filter(({ table }) => tables.has(table))
}

/**
 * Returns the batch that takes the requests to the dead letters together, or undefined if their letters would not name the
 * same tables: then the parts are processed on their own.
 */
function undividedRest(
  { jobIds, storedTables, unstored }: NamedBatch,
  recorded: Formation,
  landed: Landed,
): NamedBatch | undefined {
  const isMoreStored = landed.tables.size > 0
  const isAlike = [...landed.days].every(([table, { size }]) => size === 0 || landed.tables.has(table))
  if (!isAlike || (isMoreStored && storedTables.length > 0)) return undefined
  // A request that is refused now may have rows in tables that were stored before.
  return isMoreStored
    ? { batchId: randomUUID(), jobIds, storedTables: [...landed.tables], unstored: recorded.refused }
    : { batchId: randomUUID(), jobIds, storedTables, unstored }
}
