import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type MigrateOptions, migrate } from '../../clickhouse/migrate/migrate.ts'
import { ROOT } from '../../deploy/local/config.ts'

/** The result of all migrations of a checkout. */
interface Schema {
  /** Create the tables, then the views, of the database `TEMPLATE`. */
  readonly statements: readonly string[]
  /** Rows of `schema_migrations`. */
  readonly journal: readonly object[]
}

/** Replaces the name of the database in kept statements. Nothing else in them contains it. */
const TEMPLATE = 'penstock_schema_template'
const KEPT_IN = join(ROOT, 'node_modules/.cache/schema')
/** Files that decide on the schema: the migrations, the code that runs them, and the version of ClickHouse. */
const SOURCES = ['clickhouse/migrations', 'clickhouse/migrate', 'node_modules/chdb/package.json']

/**
 * Migrates a database. A new one first gets the tables that all migrations lead to, which takes a tenth of the time of the
 * migrations themselves, so that these find nothing to do. The first call of a checkout runs them, and keeps the statements for
 * later calls.
 */
export async function migrateQuickly(client: ClickHouseClient, options: MigrateOptions): Promise<void> {
  const { database } = options
  const [found] = await rowsOf<{ exists: number }>(
    client,
    `SELECT count() AS exists FROM system.databases WHERE name = '${database}'`,
  )
  if (!Number(found?.exists)) await createTables(client, options)
  await migrate(client, options)
}

async function createTables(client: ClickHouseClient, options: MigrateOptions): Promise<void> {
  const { database } = options
  const path = join(KEPT_IN, `${await digestOfSources()}.json`)
  const kept = await readFile(path, 'utf8').catch(() => undefined)
  const schema: Schema = kept === undefined ? await keepSchema(client, options, path) : JSON.parse(kept)
  await client.command({ query: `CREATE DATABASE ${database}` })
  for (const statement of schema.statements) {
    await client.command({ query: statement.replaceAll(`${TEMPLATE}.`, `${database}.`) })
  }
  await client.insert({ table: `${database}.schema_migrations`, values: schema.journal, format: 'JSONEachRow' })
}

async function digestOfSources(): Promise<string> {
  const hash = createHash('sha256')
  for (const source of SOURCES) {
    const path = join(ROOT, source)
    const names = source.endsWith('.json') ? [''] : (await readdir(path)).filter(name => !name.endsWith('.test.ts'))
    for (const name of names.sort()) hash.update(await readFile(join(path, name)))
  }
  return hash.digest('hex')
}

async function keepSchema(client: ClickHouseClient, options: MigrateOptions, path: string): Promise<Schema> {
  // A name of its own for each process, because several may be the first.
  const database = `${TEMPLATE}_${randomUUID().replaceAll('-', '')}`
  await migrate(client, { ...options, database })
  const created = await rowsOf<{ statement: string }>(
    client,
    `SELECT create_table_query AS statement FROM system.tables WHERE database = '${database}'
     ORDER BY engine LIKE '%View', name`,
  )
  const journal = await rowsOf<object>(
    client,
    `SELECT id, file_name, checksum, made FROM ${database}.schema_migrations ORDER BY id`,
  )
  await client.command({ query: `DROP DATABASE ${database} SYNC` })
  const schema = { statements: created.map(({ statement }) => statement.replaceAll(database, TEMPLATE)), journal }
  await mkdir(KEPT_IN, { recursive: true })
  // Another process may read or write the same file.
  const written = `${path}.${randomUUID()}`
  await writeFile(written, JSON.stringify(schema))
  await rename(written, path)
  return schema
}

async function rowsOf<T>(client: ClickHouseClient, query: string): Promise<T[]> {
  return (await client.query({ query, format: 'JSONEachRow' })).json<T>()
}
