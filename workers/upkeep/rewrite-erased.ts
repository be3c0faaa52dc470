import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { applyDeletedMask } from '../../clickhouse/queries/retention/reclaim-day.ts'
import type { ErasureStore } from '../../shared/directory/erasures.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { doneAt } from './erase-person.ts'

/** Dependencies of {@link rewriteErased}. */
interface RewriteErasedDeps {
  readonly clickhouse: ClickHouseClient
  readonly erasures: Pick<ErasureStore, 'putErasure' | 'waitingErasures'>
  readonly logger: Logger
  readonly now: () => number
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
}

/** Time that writing a day again may take. */
const REWRITE_TIMEOUT_MS = 3_600_000

/**
 * Writes the days again that erasures have deleted rows of, each once, and ends the erasures that waited for it. Interrupted, it
 * begins again: parts without deleted rows are not written. Throws the errors of the stores.
 */
export async function rewriteErased(deps: RewriteErasedDeps): Promise<void> {
  const { clickhouse, erasures, logger, assertElected } = deps
  const waiting = await erasures.waitingErasures()
  for (const masked of new Set(waiting.flatMap(erasure => erasure.masked))) {
    const [table = '', partition = ''] = masked.split('/')
    await assertElected()
    await applyDeletedMask(clickhouse, { table, partition }, AbortSignal.timeout(REWRITE_TIMEOUT_MS))
    logger.info({ table, partition }, 'erased rows have left the disk')
  }
  for (const erasure of waiting) {
    await assertElected()
    await erasures.putErasure(doneAt(erasure, deps))
  }
}
