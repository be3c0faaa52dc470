import { type ClickHouseClient, isClickHouseCode } from '../client.ts'
import { selectRows } from '../select.ts'
import type { Migration } from './migration-files.ts'

/** Column of a table as `system.columns` has it, complete enough to add it again. */
export interface DescribedColumn {
  readonly name: string
  readonly type: string
  /** `DEFAULT`, `MATERIALIZED`, `ALIAS`, … or empty. */
  readonly defaultKind: string
  readonly defaultExpression: string
  /** `CODEC(…)` or empty. */
  readonly codec: string
  readonly comment: string
}

/** Table or view as `system.tables` has it, complete enough to make it again. */
export interface DescribedTable {
  readonly name: string
  readonly engine: string
  readonly sortingKey: string
  /** In the order of the table. */
  readonly columns: readonly DescribedColumn[]
  /** The materialized views that read each block that is inserted. */
  readonly views: readonly string[]
  /** The statement that creates it, with `${database}.` before the names of tables. */
  readonly statement: string
}

const READ_TIMEOUT_MS = 10_000

/** UNKNOWN_TABLE and UNKNOWN_DATABASE. */
const [UNKNOWN_TABLE, UNKNOWN_DATABASE] = [60, 81]

interface Row extends Omit<DescribedTable, 'columns'> {
  readonly columns: readonly [string, string, string, string, string, string][]
}

/** Reads all tables and views of a database of one server. Throws as `selectRows` does. */
export async function describeTables(client: ClickHouseClient, database: string): Promise<DescribedTable[]> {
  const rows = await selectRows<Row>(client, {
    query: `
      SELECT t.name AS name, t.engine AS engine, t.sorting_key AS sortingKey, t.dependencies_table AS views,
        t.create_table_query AS statement, c.columns AS columns
      FROM system.tables AS t
      LEFT JOIN (
        SELECT table, groupArray([name, type, default_kind, default_expression, compression_codec, comment]) AS columns
        FROM (SELECT * FROM system.columns WHERE database = {database: String} ORDER BY table, position) GROUP BY table
      ) AS c ON c.table = t.name
      WHERE t.database = {database: String} AND NOT t.is_temporary
      ORDER BY name`,
    params: { database },
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  })
  return rows.map(({ columns, statement, ...table }) => ({
    ...table,
    columns: columns.map(([name, type, defaultKind, defaultExpression, codec, comment]) => ({
      ...{ name, type, defaultKind, defaultExpression, codec, comment },
    })),
    statement: statement.replaceAll(new RegExp(`\\b${database}\\.`, 'g'), `\${database}.`),
  }))
}

const CREATES = /^CREATE (?:OR REPLACE )?(?:TABLE|(?:MATERIALIZED )?VIEW|DICTIONARY) (?:IF NOT EXISTS )?([\w.${}`]+)/i
const RENAMES = /^RENAME TABLE IF EXISTS .* TO ([\w.${}`]+)$/is

/** Returns the names that migrations give to tables and views. An operator may have further tables in the database. */
export function madeNames(migrations: readonly Migration[]): ReadonlySet<string> {
  const names = migrations
    .flatMap(({ statements }) => statements)
    .flatMap(statement => (CREATES.exec(statement) ?? RENAMES.exec(statement))?.[1] ?? [])
  return new Set(names.map(name => name.replaceAll('`', '').split('.').at(-1) ?? ''))
}

/** Returns whether an error of a read means that the database, or the table, is missing. */
export function isMissing(error: unknown): boolean {
  return isClickHouseCode(error, UNKNOWN_TABLE) || isClickHouseCode(error, UNKNOWN_DATABASE)
}
