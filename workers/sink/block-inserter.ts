import { clickHouseCode, clickHouseText } from '../../clickhouse/client.ts'
import { isUnitStored } from '../../clickhouse/cluster/shard-units.ts'
import { type RetryDeps, retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import type { NamedBatch } from '../queue/payloads/batch-record.ts'
import type { LockedJob, PayloadStore } from '../queue/payloads/payload-store.ts'
import type { CondemnAfter, RepeatedFailures } from '../queue/repeated-failures.ts'
import type { InsertSlot } from './pace/insert-slot.ts'
import type { TableBlock } from './row-batch.ts'

/** Inserts one block. Repeated with the same token, it adds nothing. Throws a PermanentError or a TransientError. */
type InsertBlock = (block: TableBlock, deduplicationToken: string) => Promise<void>

/** Prefix of the ids of batches that are parts of a condemned batch. It survives a restart, because it is in the record. */
const SUSPECT_PREFIX = 'suspect-'
/** Bounds for the parts of a batch that was condemned: one of them is likely at fault. */
const CONDEMN_SUSPECT_AFTER: CondemnAfter = { attempts: 5, ms: 20_000 }
/** A batch that ClickHouse refuses for this long leaves its slot to others between its attempts. */
const LEAVE_SLOT_AFTER_MS = 10_000

/** Returns the id of a part of a batch that is refused. */
export function partIdOf({ batchId }: NamedBatch, isCondemned: boolean, id: string): string {
  return isCondemned || batchId.startsWith(SUSPECT_PREFIX) ? `${SUSPECT_PREFIX}${id}` : id
}

/** Dependencies of inserting the blocks of a batch. */
export interface BlockInserterDeps extends Omit<RetryDeps, 'holdsLock' | 'onFailure'> {
  readonly store: Pick<PayloadStore, 'holdsLocks'>
  readonly insert: InsertBlock
  /** Batches that ClickHouse keeps refusing. The pools of a process have one each. */
  readonly failures: RepeatedFailures
  readonly condemnAfter: CondemnAfter
}

/** ClickHouse refused the content of a batch. */
export class RefusedBatchError extends Error {
  override readonly name = 'RefusedBatchError'
  /** Tables that had accepted their blocks before. */
  readonly storedTables: readonly string[]
  /** The code does not name a fault of the content, but ClickHouse has accepted everything else meanwhile. */
  readonly isCondemned: boolean

  constructor(storedTables: readonly string[], cause: PermanentError) {
    super(cause.message, { cause })
    this.storedTables = storedTables
    this.isCondemned = cause instanceof CondemnedError
  }
}

class CondemnedError extends PermanentError {}

/** Inserts the blocks of named batches, and repeats each insert until it is confirmed or the batch is at fault. */
export class BlockInserter {
  readonly #deps: BlockInserterDeps
  readonly #failures: RepeatedFailures

  constructor(deps: BlockInserterDeps) {
    this.#deps = deps
    this.#failures = deps.failures
  }

  /**
   * Inserts the blocks in turn, without those of tables that have their rows. Throws a RefusedBatchError if ClickHouse
   * refuses the content of a block. The batch keeps its slot while ClickHouse does not answer, so that the pool pauses.
   */
  async insert(
    named: NamedBatch,
    blocks: readonly TableBlock[],
    holders: readonly LockedJob[],
    slot: InsertSlot | undefined,
  ): Promise<void> {
    const stored = [...named.storedTables]
    for (const block of blocks) {
      if (block.rows === 0 || isUnitStored(stored, block.table)) continue
      try {
        await this.#insertBlock(named, block, holders, slot)
      } catch (error) {
        this.#failures.forget(named.batchId)
        throw error instanceof PermanentError ? new RefusedBatchError(stored, error) : error
      }
      stored.push(block.table)
    }
  }

  async #insertBlock(
    { batchId }: NamedBatch,
    block: TableBlock,
    holders: readonly LockedJob[],
    slot: InsertSlot | undefined,
  ): Promise<void> {
    const { store, condemnAfter } = this.#deps
    const { table } = block
    const retryDeps = {
      ...this.#deps,
      holdsLock: () => store.holdsLocks(holders),
      onFailure: (error: unknown) => {
        this.#deps.logger.debug({ batchId, table, text: clickHouseText(error) }, 'insert failed')
        const after = batchId.startsWith(SUSPECT_PREFIX) ? lesserOf(condemnAfter) : condemnAfter
        if (this.#failures.failed(table, batchId, clickHouseCode(error), after)) {
          throw new CondemnedError(`refused again and again: ${(error as Error).message}`, { cause: error })
        }
        if (this.#failures.failingMs(batchId) > LEAVE_SLOT_AFTER_MS) slot?.release()
      },
    }
    await retryUntilStopped(retryDeps, `insert into ${table}`, async () => {
      await slot?.hold()
      await this.#insertConfirmed(block, `${batchId}:${table}`)
    })
    this.#failures.succeeded(table, batchId)
  }

  /**
   * Repeats an insert whose content was refused, once. The first refusal may come from a body that was cut on its way, or
   * while an attempt that timed out was still running. Dividing a batch whose rows are stored would store them twice.
   */
  async #insertConfirmed(block: TableBlock, token: string): Promise<void> {
    const { insert } = this.#deps
    try {
      await insert(block, token)
    } catch (error) {
      if (!(error instanceof PermanentError)) throw error
      await insert(block, token)
    }
  }
}

function lesserOf({ attempts, ms }: CondemnAfter): CondemnAfter {
  return {
    attempts: Math.min(attempts, CONDEMN_SUSPECT_AFTER.attempts),
    ms: Math.min(ms, CONDEMN_SUSPECT_AFTER.ms),
  }
}
