import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { TransientError } from '../../shared/runtime/errors.ts'
import { quoteIdentifier } from '../quote.ts'

/** A held lock. */
export interface MigrationLock {
  /** Throws a TransientError if another process has taken over the lock. Must be called before every step. */
  assertHeld(): Promise<void>
  release(): Promise<void>
}

/** Settings of the lock. */
interface MigrationLockOptions {
  readonly database: string
  /** How long a holder may send no heartbeat before it counts as dead. */
  readonly expiryMs: number
  readonly waitMs: number
}

const LOCK_TABLE = 'schema_migrations_lock'
const TABLE_ALREADY_EXISTS = '57'
const UNKNOWN_TABLE = '60'
const POLL_MS = 200
const HELD_BY_ANOTHER = 'another process holds the migration lock: wait for its migration to end and try again'

/**
 * Acquires a mutex in a ClickHouse without Keeper. A process holds it if it created the table `schema_migrations_lock`.
 * The comment of the table names the holder, and its rows are heartbeats. The table is never dropped but renamed to a
 * name that contains the holder it was read with. A late release, or a late removal of a dead holder, therefore finds
 * its target name taken and cannot remove the lock of the next holder. All times are those of the server.
 */
export async function acquireMigrationLock(
  client: ClickHouseClient,
  options: MigrationLockOptions,
): Promise<MigrationLock> {
  const lock = new TableLock(client, options)
  await lock.acquire()
  await dropOldLocks(client, options.database)
  lock.beginHeartbeats()
  return lock
}

class TableLock implements MigrationLock {
  readonly #client: ClickHouseClient
  readonly #options: MigrationLockOptions
  readonly #database: string
  readonly #owner = randomUUID().replaceAll('-', '')
  #lastHeartbeatMs = 0
  #longestSilenceMs = 0
  #beating: NodeJS.Timeout | undefined

  constructor(client: ClickHouseClient, options: MigrationLockOptions) {
    this.#client = client
    this.#options = options
    this.#database = quoteIdentifier(options.database)
  }

  async acquire(): Promise<void> {
    const { database, expiryMs, waitMs } = this.#options
    const until = Date.now() + waitMs
    this.#lastHeartbeatMs = Date.now()
    while (!(await this.#create())) {
      if (Date.now() > until) throw new TransientError(HELD_BY_ANOTHER)
      const holder = await readHolder(this.#client, database)
      if (holder !== undefined && holder.silentMs > expiryMs) await this.#bury(holder.owner)
      else await delay(POLL_MS + Math.random() * POLL_MS)
      this.#lastHeartbeatMs = Date.now()
    }
  }

  beginHeartbeats(): void {
    this.#beating = setInterval(() => void this.#beat(), this.#options.expiryMs / 5).unref()
  }

  async assertHeld(): Promise<void> {
    const holder = await readHolder(this.#client, this.#options.database)
    if (holder?.owner !== this.#owner)
      throw new TransientError('another process has taken over the migration lock: run the migration again')
  }

  async release(): Promise<void> {
    clearInterval(this.#beating)
    const released = await this.#bury(this.#owner)
    this.#observeSilence()
    // This holder never counted as dead, so no late removal is running that the taken name must stop.
    if (released && this.#longestSilenceMs < this.#options.expiryMs) {
      await this.#client.command({ query: `DROP TABLE IF EXISTS ${this.#database}.${LOCK_TABLE}_${this.#owner}` })
    }
  }

  #create(): Promise<boolean> {
    return succeeds(
      this.#client,
      `CREATE TABLE ${this.#database}.${LOCK_TABLE} (beat_at DateTime64(3) DEFAULT now64(3), owner FixedString(32))
       ENGINE = MergeTree ORDER BY tuple() COMMENT '${this.#owner}'`,
      [TABLE_ALREADY_EXISTS],
    )
  }

  #bury(holder: string): Promise<boolean> {
    return succeeds(
      this.#client,
      `RENAME TABLE ${this.#database}.${LOCK_TABLE} TO ${this.#database}.${LOCK_TABLE}_${holder}`,
      [TABLE_ALREADY_EXISTS, UNKNOWN_TABLE],
    )
  }

  async #beat(): Promise<void> {
    const sentAtMs = Date.now()
    const query = `INSERT INTO ${this.#database}.${LOCK_TABLE} (owner) VALUES ('${this.#owner}')`
    try {
      await this.#client.command({ query, clickhouse_settings: { async_insert: 0 } })
      this.#observeSilence()
      this.#lastHeartbeatMs = sentAtMs
    } catch {
      // No repair is needed: assertHeld detects a lost lock before the next step.
    }
  }

  #observeSilence(): void {
    this.#longestSilenceMs = Math.max(this.#longestSilenceMs, Date.now() - this.#lastHeartbeatMs)
  }
}

/** Reads who holds the lock and how long ago its last heartbeat was. */
async function readHolder(
  client: ClickHouseClient,
  database: string,
): Promise<{ owner: string; silentMs: number } | undefined> {
  const table = await client.query({
    query: `SELECT comment AS owner, dateDiff('millisecond', toDateTime64(metadata_modification_time, 3), now64(3)) AS ageMs
            FROM system.tables WHERE database = {database: String} AND name = '${LOCK_TABLE}'`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  const found = (await table.json<{ owner: string; ageMs: string | number }>())[0]
  if (found === undefined) return undefined
  try {
    const beats = await client.query({
      query: `SELECT dateDiff('millisecond', max(beat_at), now64(3)) AS silentMs
              FROM ${quoteIdentifier(database)}.${LOCK_TABLE} WHERE owner = {owner: String} HAVING count() > 0`,
      query_params: { owner: found.owner },
      format: 'JSONEachRow',
    })
    const last = (await beats.json<{ silentMs: string | number }>())[0]
    return { owner: found.owner, silentMs: Number(last?.silentMs ?? found.ageMs) }
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === UNKNOWN_TABLE) return undefined
    throw error
  }
}

/** Drops renamed locks after a day. Until then they stop late removals. */
async function dropOldLocks(client: ClickHouseClient, database: string): Promise<void> {
  const result = await client.query({
    query: `SELECT name FROM system.tables WHERE database = {database: String} AND startsWith(name, '${LOCK_TABLE}_')
            AND metadata_modification_time < now() - INTERVAL 1 DAY`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  for (const { name } of await result.json<{ name: string }>()) {
    await client.command({ query: `DROP TABLE IF EXISTS ${quoteIdentifier(database)}.${quoteIdentifier(name)}` })
  }
}

/** Returns true if a statement succeeds and false for one of the expected codes. Throws any other error. */
async function succeeds(client: ClickHouseClient, query: string, expectedCodes: string[]): Promise<boolean> {
  try {
    await client.command({ query })
    return true
  } catch (error) {
    if (error instanceof ClickHouseError && expectedCodes.includes(error.code)) return false
    throw error
  }
}
