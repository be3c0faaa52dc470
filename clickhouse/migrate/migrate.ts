import { fileURLToPath } from 'node:url'
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { classifyClickHouseError, quoteIdentifier } from '../client.ts'
import { fillPlaceholders, type Migration, readMigrations } from './migration-files.ts'
import { acquireMigrationLock, type MigrationLock } from './migration-lock.ts'

export interface MigrateOptions {
  readonly database: string
  readonly retentionDays: number
  readonly logger: Logger
  /** Where the numbered files are; `clickhouse/migrations` when left out. */
  readonly directory?: string
  /** A holder of the lock that is silent for so long counts as dead. */
  readonly lockExpiryMs?: number
  /** How long to wait for another process that migrates. */
  readonly lockWaitMs?: number
}

const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url))
/** The client must wait longer for an answer. */
export const MIGRATION_TIMEOUT_MS = 3_600_000
const MAX_STATEMENT_SECONDS = MIGRATION_TIMEOUT_MS / 1_000 - 60
const ALREADY_EXISTS = new Set(['57', '82'])

/**
 * Brings the database to the schema of this checkout; any number of processes may call it at once. The client must be
 * connected to `default` (created without `database`) and wait MIGRATION_TIMEOUT_MS for answers. Throws a PermanentError when an applied migration was edited,
 * else a TransientError: calling it again goes on where it stopped. Migrations of a newer checkout are left alone.
 */
export async function migrate(client: ClickHouseClient, options: MigrateOptions): Promise<void> {
  const values = placeholderValues(options)
  const migrations = await readMigrations(options.directory ?? MIGRATIONS)
  try {
    if ((await pending(client, options, migrations)).length === 0 && (await staleTtls(client, options)).length === 0) {
      options.logger.debug('the schema is up to date')
      return
    }
    await createJournal(client, options.database)
    const lock = await acquireMigrationLock(client, {
      database: options.database,
      expiryMs: options.lockExpiryMs ?? 15_000,
      waitMs: options.lockWaitMs ?? 300_000,
    })
    try {
      for (const migration of await pending(client, options, migrations)) {
        await apply(client, options, migration, values, lock)
      }
      await applyRetention(client, options, lock)
    } finally {
      await lock.release()
    }
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}

function placeholderValues({ database, retentionDays }: MigrateOptions): Map<string, string> {
  if (!/^[a-z_][a-z0-9_]*$/.test(database)) throw new PermanentError('the database name is not a plain identifier')
  if (!Number.isInteger(retentionDays) || retentionDays < 1) {
    throw new PermanentError('RETENTION_DAYS must be a whole number of days, at least 1')
  }
  return new Map([
    ['database', database],
    ['retention_days', String(retentionDays)],
  ])
}

async function createJournal(client: ClickHouseClient, database: string): Promise<void> {
  const statements = [
    `CREATE DATABASE IF NOT EXISTS ${quoteIdentifier(database)}`,
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(database)}.schema_migrations
     (id UInt32, file_name String, checksum FixedString(64), applied_at DateTime64(3) DEFAULT now64(3))
     ENGINE = MergeTree ORDER BY id`,
  ]
  for (const query of statements) {
    await client.command({ query }).catch(error => {
      // IF NOT EXISTS looks and then creates: two at the same moment, and the second is told that it exists.
      if (!(error instanceof ClickHouseError && ALREADY_EXISTS.has(error.code))) throw error
    })
  }
}

/** What is not in the journal yet. Throws a PermanentError when what is there has changed since. */
async function pending(
  client: ClickHouseClient,
  { database }: MigrateOptions,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  if (!(await tableExists(client, database, 'schema_migrations'))) return [...migrations]
  const result = await client.query({
    query: `SELECT id, any(checksum) AS checksum FROM ${quoteIdentifier(database)}.schema_migrations GROUP BY id`,
    format: 'JSONEachRow',
  })
  const applied = new Map((await result.json<{ id: number; checksum: string }>()).map(row => [row.id, row.checksum]))
  for (const { id, fileName, checksum } of migrations) {
    if (applied.has(id) && applied.get(id) !== checksum) {
      throw new PermanentError(`${fileName} was edited after it was applied: undo the edit and write a new migration`)
    }
  }
  return migrations.filter(migration => !applied.has(migration.id))
}

async function apply(
  client: ClickHouseClient,
  { database, logger }: MigrateOptions,
  migration: Migration,
  values: ReadonlyMap<string, string>,
  lock: MigrationLock,
): Promise<void> {
  for (const statement of migration.statements) {
    await lock.assertHeld()
    await client.command({
      query: fillPlaceholders(statement, values),
      // Ends in the server before the client gives up: what goes on unseen would meet its own repetition.
      clickhouse_settings: { wait_end_of_query: 1, max_execution_time: MAX_STATEMENT_SECONDS },
      // Names without a database are of ours. The client sends no database of its own that would go before it.
      http_headers: { 'X-ClickHouse-Database': database },
    })
  }
  await lock.assertHeld()
  await client.insert({
    table: `${quoteIdentifier(database)}.schema_migrations`,
    values: [{ id: migration.id, file_name: migration.fileName, checksum: migration.checksum }],
    columns: ['id', 'file_name', 'checksum'],
    format: 'JSONEachRow',
    clickhouse_settings: { async_insert: 0 },
  })
  logger.info({ migration: migration.fileName }, 'migration applied')
}

interface StaleTtl {
  readonly table: string
  readonly expression: string
}

/**
 * Tables that keep rows for another number of days than they should. A retention is a TTL in days with a default
 * (`… + toIntervalDay(30)`): a table that must keep its rows for a fixed time says so in hours.
 */
async function staleTtls(client: ClickHouseClient, { database, retentionDays }: MigrateOptions): Promise<StaleTtl[]> {
  const result = await client.query({
    query: `SELECT name, extract(engine_full, ' TTL (.*?)(?: SETTINGS .*)?$') AS ttl
            FROM system.tables WHERE database = {database: String} AND ttl != '' ORDER BY name`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  const wanted = `toIntervalDay(${retentionDays})`
  return (await result.json<{ name: string; ttl: string }>())
    .map(({ name, ttl }) => ({ table: name, ttl, expression: ttl.replaceAll(/toIntervalDay\(\d+\)/g, wanted) }))
    .filter(({ ttl, expression }) => ttl !== expression)
}

async function applyRetention(client: ClickHouseClient, options: MigrateOptions, lock: MigrationLock): Promise<void> {
  for (const { table, expression } of await staleTtls(client, options)) {
    await lock.assertHeld()
    const name = `${quoteIdentifier(options.database)}.${quoteIdentifier(table)}`
    // The parts that exist get the new date too, by a mutation that rewrites their TTL marks and none of their columns.
    await client.command({ query: `ALTER TABLE ${name} MODIFY SETTING materialize_ttl_recalculate_only = 1` })
    await client.command({
      query: `ALTER TABLE ${name} MODIFY TTL ${expression}`,
      clickhouse_settings: { materialize_ttl_after_modify: 1, wait_end_of_query: 1 },
    })
    options.logger.info({ table, retentionDays: options.retentionDays }, 'retention changed')
  }
}

async function tableExists(client: ClickHouseClient, database: string, table: string): Promise<boolean> {
  const result = await client.query({
    query: 'SELECT 1 FROM system.tables WHERE database = {database: String} AND name = {table: String}',
    query_params: { database, table },
    format: 'JSONEachRow',
  })
  return (await result.json()).length > 0
}
