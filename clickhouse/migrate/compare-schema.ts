import { PermanentError } from '../../shared/runtime/errors.ts'
import type { ClickHouseClient, ShardServer } from '../client.ts'
import { clusterDatabase } from '../cluster/shard-maps.ts'
import { type DescribedColumn, type DescribedTable, describeTables } from './describe-tables.ts'
import { type Journal, readJournal } from './journal.ts'
import type { Migration } from './migration-files.ts'

/** A difference between a database and the one that the migrations make. */
export type SchemaDifference = {
  /** Name of the table, the view or the migration. */
  readonly name: string
  readonly text: string
} & (
  | { readonly kind: 'unapplied' | 'edited' | 'changed' }
  | { readonly kind: 'table'; readonly table: DescribedTable }
  /** `source` is the table whose inserts the view reads. */
  | { readonly kind: 'view'; readonly table: DescribedTable; readonly source: string | undefined }
  | { readonly kind: 'column'; readonly table: DescribedTable; readonly column: DescribedColumn }
)

/**
 * Compares the database of one server with the one that the migrations make. Migrations of a newer version are fine. Throws as
 * `selectRows` does.
 */
export async function schemaDifferences(
  client: ClickHouseClient,
  database: string,
  migrations: readonly Migration[],
): Promise<SchemaDifference[]> {
  const journal = await readJournal(client, database)
  if (journal === undefined)
    return [{ kind: 'unapplied', name: database, text: `the database ${database} has no schema` }]
  return [
    ...compareJournal(journal, migrations),
    ...compareTables(journal.made, await describeTables(client, database)),
  ]
}

async function clusterDifferences(client: ClickHouseClient, database: string): Promise<SchemaDifference[]> {
  const [journal, found] = await Promise.all([
    readJournal(client, database),
    describeTables(client, clusterDatabase(database)),
  ])
  const names = new Set(found.map(({ name }) => name))
  return (journal?.made ?? [])
    .filter(({ name, engine }) => engine.endsWith('MergeTree') && !names.has(name))
    .map(({ name }) => ({ kind: 'unapplied', name, text: `the table ${clusterDatabase(database)}.${name} is missing` }))
}

/** Compares all of a server: its database, and in a cluster also the tables that read all shards. */
export async function serverDifferences(
  { client }: ShardServer,
  { database, isCluster }: { readonly database: string; readonly isCluster: boolean },
  migrations: readonly Migration[],
): Promise<SchemaDifference[]> {
  const own = await schemaDifferences(client, database, migrations)
  return isCluster ? [...own, ...(await clusterDifferences(client, database))] : own
}

/** Returns a difference as a sentence that names the command to run. */
export function adviceFor({ kind, text }: SchemaDifference): string {
  if (kind === 'edited') return `${text}: run the version that has migrated it`
  if (kind === 'changed') return `${text}: change it back`
  return `${text}: run npm run migrate`
}

function compareJournal({ applied }: Journal, migrations: readonly Migration[]): SchemaDifference[] {
  return migrations.flatMap(({ id, fileName, checksum }): SchemaDifference[] => {
    const known = applied.get(id)
    if (known === undefined) {
      return [{ kind: 'unapplied', name: fileName, text: `the migration ${fileName} is not applied` }]
    }
    if (known === checksum) return []
    return [{ kind: 'edited', name: fileName, text: `${fileName} is not the file that was applied to the database` }]
  })
}

/**
 * Compares tables and views by name, engine, sorting key and the types of their columns. Further tables and columns, settings,
 * indexes and the queries of views are not compared: ClickHouse writes an expression differently from version to version.
 */
export function compareTables(made: readonly DescribedTable[], found: readonly DescribedTable[]): SchemaDifference[] {
  const tables = new Map(found.map(table => [table.name, table]))
  return made.flatMap((table): SchemaDifference[] => {
    const { name } = table
    const present = tables.get(name)
    if (present !== undefined) return compareTable(table, present)
    if (!isView(table)) return [{ kind: 'table', name, text: `the table ${name} is missing`, table }]
    const source = made.find(({ views }) => views.includes(name))?.name
    return [{ kind: 'view', name, text: `the materialized view ${name} is missing`, table, source }]
  })
}

function compareTable(made: DescribedTable, found: DescribedTable): SchemaDifference[] {
  const { name } = made
  const changed = (text: string): SchemaDifference => ({ kind: 'changed', name, text })
  if (found.engine !== made.engine) {
    return [changed(`the table ${name} has the engine ${found.engine} instead of ${made.engine}`)]
  }
  const columns = new Map(found.columns.map(column => [column.name, column]))
  const differences = made.columns.flatMap((column): SchemaDifference[] => {
    const type = columns.get(column.name)?.type
    const place = `the column ${column.name} of the table ${name}`
    if (type === undefined && isView(made)) return [changed(`${place} is missing`)]
    if (type === undefined) return [{ kind: 'column', name, text: `${place} is missing`, table: made, column }]
    return type === column.type ? [] : [changed(`${place} is ${type} instead of ${column.type}`)]
  })
  if (found.sortingKey !== made.sortingKey) {
    differences.push(changed(`the table ${name} is sorted by ${found.sortingKey} instead of ${made.sortingKey}`))
  }
  return differences
}

/** Returns whether a table is a materialized view, which has no rows of its own. */
function isView({ engine }: DescribedTable): boolean {
  return engine === 'MaterializedView'
}

/** The schema differs from the one that the migrations make, in a way that cannot be repaired. */
export class SchemaError extends PermanentError {
  readonly differences: readonly SchemaDifference[]

  constructor(differences: readonly SchemaDifference[]) {
    super(`the schema is not the one that the migrations make: ${differences.map(({ text }) => text).join('; ')}`)
    this.differences = differences
  }
}
