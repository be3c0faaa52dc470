import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { rewriteMasked, selectMasked } from '../../clickhouse/queries/retention/reclaim-day.ts'
import { TABLE_CONTENTS } from '../../schemas/records/erased-places.ts'
import type { ErasureStore } from '../../shared/directory/erasures.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { doneAt } from './erase-person.ts'

/** Dependencies of {@link rewriteErased}. */
interface RewriteErasedDeps {
  readonly clickhouse: ClickHouseClient
  readonly erasures: Pick<ErasureStore, 'endWaiting' | 'waitingErasures'>
  readonly logger: Logger
  readonly now: () => number
  readonly stopping: AbortSignal
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
}

/** Time that writing a day again may take. The client gives up after that of `UPKEEP_TIMEOUT_MS`. */
const REWRITE_TIMEOUT_MS = 3_600_000

/**
 * If erasures wait for it, writes all days again that have deleted rows of tables with persons, each once, and ends these erasures.
 * Rows that were deleted for another reason leave the disk with them. Interrupted, it begins again: days without deleted rows are
 * not written. A day that cannot be written holds up no other day, but the erasures, of each of which it may have rows. Throws a
 * TransientError then, or the errors of the stores.
 */
export async function rewriteErased(deps: RewriteErasedDeps): Promise<void> {
  const { clickhouse, erasures, logger, stopping, assertElected } = deps
  const waiting = await erasures.waitingErasures()
  if (waiting.length === 0) return
  const deadline = () => AbortSignal.any([AbortSignal.timeout(REWRITE_TIMEOUT_MS), stopping])
  const tables = Object.keys(TABLE_CONTENTS).filter(table => TABLE_CONTENTS[table] === 'erased')
  let failed = 0
  for (const masked of await selectMasked(clickhouse, tables, deadline())) {
    await assertElected()
    try {
      await rewriteMasked(clickhouse, masked, deadline())
      logger.info(masked, 'deleted rows have left the disk')
    } catch (error) {
      stopping.throwIfAborted()
      failed++
      logger.warn({ ...masked, ...errorFields(error) }, 'deleted rows could not leave the disk')
    }
  }
  if (failed > 0) throw new TransientError(`${failed} days could not be written again, and erasures wait for them`)
  for (const erasure of waiting) {
    await assertElected()
    await erasures.endWaiting(doneAt(erasure, deps))
  }
}
