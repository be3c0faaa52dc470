import { fileURLToPath } from 'node:url'
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { HOUR_MS } from '../../schemas/units.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { classifyClickHouseError, quoteIdentifier } from '../client.ts'
import { fillPlaceholders, type Migration, readMigrations } from './migration-files.ts'
import { acquireMigrationLock, type MigrationLock } from './migration-lock.ts'
import { changeSettings, staleSettings, TABLE_SETTINGS, type TableSettings } from './table-settings.ts'

/** Settings of a migration. */
export interface MigrateOptions {
  readonly database: string
  readonly retentionDays: number
  /** `TABLE_SETTINGS` if left out. */
  readonly tableSettings?: TableSettings
  readonly logger: Logger
  /**
   * Returns the workers that run. A migration that needs quiet is refused while there are any. If left out, the caller knows
   * that there are none.
   */
  readonly runningWorkers?: () => Promise<readonly string[]>
  /** Folder of the numbered files; `clickhouse/migrations` if left out. */
  readonly directory?: string
  /** Time without a heartbeat after which a holder of the lock counts as dead. */
  readonly lockExpiryMs?: number
  /** How long to wait for another process that migrates. */
  readonly lockWaitMs?: number
  /** Returns the form of a statement for a server of a cluster, or undefined if another replica runs it. */
  readonly adapt?: (statement: string) => string | undefined
  /**
   * Whether migrations that create a view need quiet too: the other replicas of a shard get the view later, and what is inserted
   * there meanwhile would be missing from it.
   */
  readonly viewsNeedQuiet?: boolean
}

/** Changes that a migration has made. */
interface MigrationSummary {
  /** Number of migrations that were applied. */
  readonly migrations: number
  /** Number of tables whose retention or settings were changed. */
  readonly tables: number
}

const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url))
/** Timeout of the client. Statements must end earlier, see MAX_STATEMENT_SECONDS. */
export const MIGRATION_TIMEOUT_MS = HOUR_MS
const MAX_STATEMENT_SECONDS = MIGRATION_TIMEOUT_MS / 1_000 - 60
const CREATES_VIEW = /^CREATE MATERIALIZED VIEW\b/i
const ALREADY_EXISTS = new Set(['57', '82'])

/**
 * Migrates the database to the schema of this checkout, and logs one line for all migrations and one for all settings. Any number
 * of processes may call it at the same time. The client must be created without `database` and with MIGRATION_TIMEOUT_MS. Throws
 * a PermanentError if an applied migration was edited, else a TransientError: the next call continues where this one stopped.
 * Migrations of a newer checkout remain.
 */
export async function migrate(client: ClickHouseClient, options: MigrateOptions): Promise<MigrationSummary> {
  const values = placeholderValues(options)
  const migrations = await readMigrations(options.directory ?? MIGRATIONS)
  try {
    if ((await pending(client, options, migrations)).length === 0 && (await isCurrent(client, options))) {
      options.logger.debug('the schema is up to date')
      return { migrations: 0, tables: 0 }
    }
    return await migrateLocked(client, options, migrations, values)
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}

async function migrateLocked(
  client: ClickHouseClient,
  options: MigrateOptions,
  migrations: readonly Migration[],
  values: ReadonlyMap<string, string>,
): Promise<MigrationSummary> {
  await createJournal(client, options.database)
  const lock = await acquireMigrationLock(client, {
    database: options.database,
    expiryMs: options.lockExpiryMs ?? 15_000,
    waitMs: options.lockWaitMs ?? 300_000,
  })
  try {
    const applied = await applyPending(client, options, await pending(client, options, migrations), values, lock)
    const retained = await applyRetention(client, options, lock)
    const set = await applySettings(client, options, lock)
    return { migrations: applied, tables: new Set([...retained, ...set]).size }
  } finally {
    await lock.release()
  }
}

/** Applies the migrations. Logs those that were applied also if one fails. */
async function applyPending(
  client: ClickHouseClient,
  options: MigrateOptions,
  migrations: readonly Migration[],
  values: ReadonlyMap<string, string>,
  lock: MigrationLock,
): Promise<number> {
  const applied: string[] = []
  try {
    for (const migration of migrations) {
      const needsQuiet =
        migration.needsQuiet ||
        (options.viewsNeedQuiet && migration.statements.some(statement => CREATES_VIEW.test(statement)))
      if (needsQuiet) await assertQuiet(migration, options)
      await apply(client, options, migration, values, lock)
      applied.push(migration.fileName)
    }
  } finally {
    if (applied.length > 0) options.logger.info({ migrations: applied }, 'migrations applied')
  }
  return applied.length
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
      // IF NOT EXISTS is not atomic: of two concurrent CREATEs one can still fail with ALREADY_EXISTS.
      if (!(error instanceof ClickHouseError && ALREADY_EXISTS.has(error.code))) throw error
    })
  }
}

/** Returns the migrations that are not in the journal. Throws a PermanentError if an applied one has changed. */
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

/** Throws a TransientError while workers run. */
async function assertQuiet({ fileName }: Migration, { runningWorkers }: MigrateOptions): Promise<void> {
  const running = (await runningWorkers?.()) ?? []
  if (running.length === 0) return
  throw new TransientError(
    `${fileName} must run while no workers do, but ${running.length} run (${running.slice(0, 5).join(', ')}): ` +
      'stop them and migrate again, or migrate with --force if they have ended',
  )
}

async function apply(
  client: ClickHouseClient,
  { database, logger, adapt = statement => statement }: MigrateOptions,
  migration: Migration,
  values: ReadonlyMap<string, string>,
  lock: MigrationLock,
): Promise<void> {
  for (const statement of migration.statements) {
    const adapted = adapt(statement)
    if (adapted === undefined) continue
    await lock.assertHeld()
    await client.command({
      query: fillPlaceholders(adapted, values),
      // The server must time out before the client: a retry could overlap a statement that is still running.
      clickhouse_settings: { wait_end_of_query: 1, max_execution_time: MAX_STATEMENT_SECONDS },
      // Default database of unqualified names. The client has no database that would take precedence.
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
  logger.debug({ migration: migration.fileName }, 'migration applied')
}

interface StaleTtl {
  readonly table: string
  readonly expression: string
}

/**
 * Finds tables whose TTL in days differs from the retention. Only a TTL in days (`… + toIntervalDay(30)`) follows the
 * retention; a table with a fixed retention states its TTL in hours.
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

/** Returns the tables that were changed. */
async function applyRetention(
  client: ClickHouseClient,
  options: MigrateOptions,
  lock: MigrationLock,
): Promise<readonly string[]> {
  const stale = await staleTtls(client, options)
  for (const { table, expression } of stale) {
    await lock.assertHeld()
    const name = `${quoteIdentifier(options.database)}.${quoteIdentifier(table)}`
    // Existing parts get the new date too, by a mutation that rewrites their TTL marks but no columns.
    await client.command({ query: `ALTER TABLE ${name} MODIFY SETTING materialize_ttl_recalculate_only = 1` })
    await client.command({
      query: `ALTER TABLE ${name} MODIFY TTL ${expression}`,
      clickhouse_settings: { materialize_ttl_after_modify: 1, wait_end_of_query: 1 },
    })
  }
  const tables = stale.map(({ table }) => table)
  if (tables.length > 0) options.logger.info({ tables, retentionDays: options.retentionDays }, 'retention changed')
  return tables
}

/** Returns the tables that were changed. */
async function applySettings(
  client: ClickHouseClient,
  options: MigrateOptions,
  lock: MigrationLock,
): Promise<readonly string[]> {
  const { database, tableSettings = TABLE_SETTINGS, logger } = options
  const stale = await staleSettings(client, database, tableSettings)
  for (const each of stale) {
    await lock.assertHeld()
    await changeSettings(client, database, each)
    logger.debug(each, 'settings of a table changed')
  }
  const tables = stale.map(({ table }) => table)
  if (tables.length > 0) logger.info({ tables }, 'settings of tables changed')
  return tables
}

/** Returns whether retention and settings of all tables are as wanted. */
async function isCurrent(client: ClickHouseClient, options: MigrateOptions): Promise<boolean> {
  if ((await staleTtls(client, options)).length > 0) return false
  const { database, tableSettings = TABLE_SETTINGS } = options
  return (await staleSettings(client, database, tableSettings)).length === 0
}

async function tableExists(client: ClickHouseClient, database: string, table: string): Promise<boolean> {
  const result = await client.query({
    query: 'SELECT 1 FROM system.tables WHERE database = {database: String} AND name = {table: String}',
    query_params: { database, table },
    format: 'JSONEachRow',
  })
  return (await result.json()).length > 0
}
