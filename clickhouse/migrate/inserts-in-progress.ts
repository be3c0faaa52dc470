import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '@clickhouse/client'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { MigrationLock } from './migration-lock.ts'

const CREATES_VIEW = /^CREATE MATERIALIZED VIEW\b/i
/** Longer than a worker waits for an insert. */
const DEADLINE_MS = 120_000
const POLL_MS = 100

/** Returns whether a statement creates a view that inserts fill. */
export function createsView(statement: string): boolean {
  return CREATES_VIEW.test(statement)
}

/**
 * Waits until all inserts into the database end that are in progress now. They do not fill a view that was created after they had
 * begun, and a copy of the rows of before must find what they store. Throws a TransientError if one of them does not end.
 */
export async function untilInsertsEnd(client: ClickHouseClient, database: string, lock: MigrationLock): Promise<void> {
  const until = Date.now() + DEADLINE_MS
  let waiting = await insertsInProgress(client, database)
  while (waiting.length > 0) {
    if (Date.now() > until) {
      throw new TransientError(`${waiting.length} inserts have not ended after ${DEADLINE_MS / 1_000} s: migrate again`)
    }
    await delay(POLL_MS)
    await lock.assertHeld()
    const running = new Set(await insertsInProgress(client, database))
    waiting = waiting.filter(id => running.has(id))
  }
}

async function insertsInProgress(client: ClickHouseClient, database: string): Promise<string[]> {
  const result = await client.query({
    query: `SELECT query_id FROM system.processes
            WHERE query_kind = 'Insert' AND current_database = {database: String}`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  return (await result.json<{ query_id: string }>()).map(({ query_id }) => query_id)
}
