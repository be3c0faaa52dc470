import { selectMemberships } from '../../clickhouse/queries/findings/select-memberships.ts'
import { selectSourceMaps } from '../../clickhouse/queries/releases/select-source-maps.ts'
import type { PoolsDeps } from '../deps.ts'
import { createExceptionsBatch } from '../exceptions/exceptions-batch.ts'
import { KnownFindings } from '../exceptions/known-findings.ts'
import { createRecentStacks } from '../exceptions/stack-requests.ts'
import type { Pool } from '../queue/pool.ts'
import { ExpressFirst } from '../sink/pace/express-first.ts'
import { NewStacks } from '../symbolication/resolve-new-stacks.ts'
import { startRowsPool } from './start-rows.ts'

/** Times of `BATCH_MAX_AGE_MS` between two inserts of exceptions. */
const EXCEPTIONS_INTERVAL = 4

/** Maps of builds are parsed within this time, and others are in the batch that waits. */
const LOOK_UP_MS = 1_000

/**
 * Starts the pool that stores exceptions, in batches of about a second, because an insert of them makes parts of several tables.
 * They follow their records in either lane, so that the bulk lanes do not give way to them. A batch waits for `lookUpMs` at most
 * for the findings of its variants.
 */
export function startExceptionsPool(deps: PoolsDeps, lookUpMs = LOOK_UP_MS): Pool {
  const { clickhouse, logger } = deps
  const newStacks = new NewStacks({
    ...deps.maps(),
    rules: deps.rules,
    selectSourceMaps: (owner, debugIds, signal) => selectSourceMaps(clickhouse, { ...owner, debugIds }, signal),
    logger,
  })
  const known = new KnownFindings({
    selectMemberships: async (variants, signal) => {
      const rows = await selectMemberships(clickhouse, variants, signal)
      return rows.map(row => ({ ...row, rank: BigInt(row.rank) }))
    },
    resolve: (stacks, signal, onMove) => newStacks.resolve(stacks, signal, onMove),
    logger,
    deadlineMs: lookUpMs,
  })
  const recentStacks = createRecentStacks()
  const source = { queue: 'exceptions', kind: 'exceptions' } as const
  const ownTurn = { ...deps, expressFirst: new ExpressFirst() }
  return startRowsPool(
    source,
    () => createExceptionsBatch(known, recentStacks, deps.rules),
    ownTurn,
    EXCEPTIONS_INTERVAL,
  )
}
