import { HOUR_MS } from '../../schemas/units.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type ClickHouseClient, classifyClickHouseError } from '../client.ts'
import { quoteIdentifier } from '../quote.ts'
import { SchemaError, schemaDifferences } from './compare-schema.ts'
import { describeTables, madeNames } from './describe-tables.ts'
import { createJournal, noteApplied, readJournal } from './journal.ts'
import { fillPlaceholders, MIGRATIONS, type Migration, readMigrations } from './migration-files.ts'
import { acquireMigrationLock, type MigrationLock } from './migration-lock.ts'
import { repairSchema } from './repair-schema.ts'
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

/** Timeout of the client. Statements must end earlier, see MAX_STATEMENT_SECONDS. */
export const MIGRATION_TIMEOUT_MS = HOUR_MS
const MAX_STATEMENT_SECONDS = MIGRATION_TIMEOUT_MS / 1_000 - 60
const CREATES_VIEW = /^CREATE MATERIALIZED VIEW\b/i

/**
 * Migrates the database to the schema of this checkout, and logs one line for all migrations and one for all settings. Any number
 * of processes may call it at the same time. The client must be created without `database` and with MIGRATION_TIMEOUT_MS. Throws
 * a PermanentError if an applied migration was edited, and a SchemaError if the schema was changed in a way that cannot be
 * repaired, else a TransientError: the next call continues where this one stopped. Migrations of a newer checkout remain. Tables,
 * views and columns that are missing are made again, each with a line in the log.
 */
export async function migrate(client: ClickHouseClient, options: MigrateOptions): Promise<MigrationSummary> {
  const values = placeholderValues(options)
  const migrations = await readMigrations(options.directory ?? MIGRATIONS)
  try {
    if (
      (await schemaDifferences(client, options.database, migrations)).length === 0 &&
      (await isCurrent(client, options))
    ) {
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
    await repair(client, options, await pending(client, options, migrations), lock)
    const applied = await applyPending(client, options, migrations, values, lock)
    const retained = await applyRetention(client, options, lock)
    const set = await applySettings(client, options, lock)
    return { migrations: applied, tables: new Set([...retained, ...set]).size }
  } finally {
    await lock.release()
  }
}

/** Statements that remove nothing. */
const ADDS = /^(?:CREATE|INSERT)\b|^ALTER TABLE \S+\s+ADD\b/i

/**
 * Repairs what is missing of the schema that the applied migrations have made: the next ones need it, and describe what they find.
 * A migration may have been interrupted that removes or changes something, so the tables that it names are left to it. Throws a
 * SchemaError if a difference is left.
 */
async function repair(
  client: ClickHouseClient,
  { database, logger }: MigrateOptions,
  pending: readonly Migration[],
  lock: MigrationLock,
): Promise<void> {
  const changes = pending.flatMap(({ statements }) => statements.filter(statement => !ADDS.test(statement))).join('\n')
  const find = async () => {
    const differences = await schemaDifferences(client, database, [])
    return differences.filter(({ name }) => !new RegExp(`\\b${name}\\b`).test(changes))
  }
  await repairSchema({ client, database, logger, lock }, await find())
  const left = await find()
  if (left.length > 0) throw new SchemaError(left)
}

/** Applies the migrations that are not in the journal. Logs those that were applied also if one fails. */
async function applyPending(
  client: ClickHouseClient,
  options: MigrateOptions,
  migrations: readonly Migration[],
  values: ReadonlyMap<string, string>,
  lock: MigrationLock,
): Promise<number> {
  const applied: string[] = []
  try {
    for (const migration of await pending(client, options, migrations)) {
      const needsQuiet =
        migration.needsQuiet ||
        (options.viewsNeedQuiet && migration.statements.some(statement => CREATES_VIEW.test(statement)))
      if (needsQuiet) await assertQuiet(migration, options)
      const made = madeNames(migrations.filter(({ id }) => id <= migration.id))
      await apply(client, options, { migration, made, values }, lock)
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

/** Returns the migrations that are not in the journal. Throws a PermanentError if an applied one has changed. */
async function pending(
  client: ClickHouseClient,
  { database }: MigrateOptions,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  const applied = (await readJournal(client, database))?.applied ?? new Map<number, string>()
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

/** A migration that is applied. */
interface Application {
  readonly migration: Migration
  /** Names of the tables and views that it and those before it make. */
  readonly made: ReadonlySet<string>
  /** Values of placeholders. */
  readonly values: ReadonlyMap<string, string>
}

async function apply(
  client: ClickHouseClient,
  { database, logger, adapt = statement => statement }: MigrateOptions,
  { migration, made, values }: Application,
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
  const tables = await describeTables(client, database)
  await noteApplied(
    client,
    database,
    migration,
    tables.filter(({ name }) => made.has(name)),
  )
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
