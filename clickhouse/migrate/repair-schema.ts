import { ClickHouseError } from '@clickhouse/client'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ClickHouseClient } from '../client.ts'
import { quoteIdentifier, quoteText } from '../quote.ts'
import type { SchemaDifference } from './compare-schema.ts'
import type { DescribedColumn, DescribedTable } from './describe-tables.ts'
import { fillPlaceholders } from './migration-files.ts'
import type { MigrationLock } from './migration-lock.ts'

/** Dependencies of `repairSchema`. */
interface RepairDeps {
  readonly client: ClickHouseClient
  readonly database: string
  readonly logger: Logger
  readonly lock: Pick<MigrationLock, 'assertHeld'>
}

/** Tables before the columns and views that need them. */
const ORDER = ['table', 'column', 'view'] as const

/**
 * Makes again what is missing of the schema, and logs a line for each table, view and column. Retention and settings of the
 * tables are those of the migration, and must be applied afterwards. Other differences are left.
 */
export async function repairSchema(deps: RepairDeps, differences: readonly SchemaDifference[]): Promise<void> {
  for (const kind of ORDER) {
    for (const difference of differences) {
      if (difference.kind !== kind) continue
      await deps.lock.assertHeld()
      deps.logger.warn(await repair(deps, difference))
    }
  }
}

async function repair(deps: RepairDeps, difference: SchemaDifference): Promise<string> {
  switch (difference.kind) {
    case 'table': {
      const { name } = difference.table
      if (await undrop(deps, name)) return `brought the table ${name} back with its rows`
      await create(deps, difference.table)
      return `made the table ${name} again: its rows are lost`
    }
    case 'view': {
      const { table, source } = difference
      await create(deps, table)
      return `made the materialized view ${table.name} again: it has no rows of what was inserted into ${source} without it`
    }
    case 'column': {
      const { table, column } = difference
      await addColumn(deps, table, column)
      return `added the column ${column.name} to the table ${table.name} again: its values are lost`
    }
    default:
      throw new TypeError(`a difference of the kind ${difference.kind} cannot be repaired`)
  }
}

/** Brings a table back that was dropped a few minutes ago (`database_atomic_delay_before_drop_table_sec`). */
async function undrop({ client, database, logger }: RepairDeps, name: string): Promise<boolean> {
  try {
    await client.command({ query: `UNDROP TABLE ${quoteIdentifier(database)}.${quoteIdentifier(name)}` })
    return true
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error
    logger.debug({ table: name, code: error.code }, 'the rows of a table cannot be brought back')
    return false
  }
}

async function create({ client, database }: RepairDeps, { statement }: DescribedTable): Promise<void> {
  const query = fillPlaceholders(statement, new Map([['database', database]]))
  await client.command({ query: query.replace(/^CREATE (TABLE|MATERIALIZED VIEW) /, 'CREATE $1 IF NOT EXISTS ') })
}

async function addColumn(
  { client, database }: RepairDeps,
  { name, columns }: DescribedTable,
  column: DescribedColumn,
): Promise<void> {
  const before = columns[columns.indexOf(column) - 1]
  const definition = [
    `${quoteIdentifier(column.name)} ${column.type}`,
    `${column.defaultKind} ${column.defaultExpression}`,
    column.comment === '' ? '' : `COMMENT ${quoteText(column.comment)}`,
    column.codec,
    before === undefined ? 'FIRST' : `AFTER ${quoteIdentifier(before.name)}`,
  ].join(' ')
  await client.command({
    query: `ALTER TABLE ${quoteIdentifier(database)}.${quoteIdentifier(name)} ADD COLUMN IF NOT EXISTS ${definition}`,
  })
}
