import { hash } from 'node:crypto'
import type { ClickHouseClient } from '../client.ts'
import { quoteIdentifier, quoteText } from '../quote.ts'
import { selectRows } from '../select.ts'
import { type BackupPlace, quotedPlace, quotedTable, runStatement } from './operation.ts'

/** A table of a backup. */
export interface TableCopy {
  readonly table: string
  readonly parts: number
  readonly rows: number
  /** Hash of the names of the parts and of the checksums of their files. */
  readonly checksum: string
}

/** A table, with the days of its partitions (`YYYYMMDD`), if they are days. */
type FoundTable = TableCopy & { readonly days: readonly string[] }

/** A backup of one server that is open as a database, which only reads. */
interface OpenedBackup {
  /** Returns the tables in the order of their names, from the descriptions of their parts. */
  tables(): Promise<FoundTable[]>
  /** Reads every file of a table, and returns the parts that have others than were written, each with the reason. */
  damagedParts(table: string): Promise<string[]>
}

const READ_TIMEOUT_MS = 120_000
/** The files of a table are read whole. */
const CHECK_TIMEOUT_MS = 12 * 3_600_000

/**
 * Opens a backup of a database on the server that has it, until the work has settled. One process at a time may open it. Throws a
 * TransientError whose cause is ClickHouse's error if there is no such backup, or one that cannot be opened.
 */
export async function withOpenedBackup<T>(
  client: ClickHouseClient,
  database: string,
  place: BackupPlace,
  work: (backup: OpenedBackup) => Promise<T>,
): Promise<T> {
  // A server finds no part of a backup that it opens again under another name (seen with 26.7).
  const opened = `${database}_backup_${hash('sha256', quotedPlace(place)).slice(0, 16)}`
  const source = `Backup(${quoteText(database)}, ${quotedPlace(place)})`
  const close = () => runStatement(client, `DROP DATABASE IF EXISTS ${quoteIdentifier(opened)} SYNC`)
  // A process that was killed has left it open.
  await close()
  await runStatement(client, `CREATE DATABASE ${quoteIdentifier(opened)} ENGINE = ${source}`)
  try {
    return await work({
      tables: () => readTables(client, opened),
      damagedParts: table => readDamage(client, { database: opened, table }),
    })
  } finally {
    await close()
  }
}

async function readTables(client: ClickHouseClient, database: string): Promise<FoundTable[]> {
  const signal = AbortSignal.timeout(READ_TIMEOUT_MS)
  const names = await selectRows<{ name: string }>(client, {
    query: 'SELECT name FROM system.tables WHERE database = {database: String} ORDER BY name',
    params: { database },
    signal,
  })
  const found = await selectRows<Omit<FoundTable, 'parts' | 'rows'> & { parts: string; rows: string }>(client, {
    query: `
      SELECT table, count() AS parts, sum(rows) AS rows,
        hex(sipHash128(arraySort(groupArray((name, hash_of_all_files))))) AS checksum,
        arraySort(groupUniqArrayIf(partition_id, match(partition_id, '^[0-9]{8}$'))) AS days
      FROM system.parts WHERE database = {database: String} AND active GROUP BY table`,
    params: { database },
    signal,
  })
  const byName = new Map(found.map(table => [table.table, table]))
  return names.map(({ name }) => {
    const { checksum = '', days = [], parts = 0, rows = 0 } = byName.get(name) ?? {}
    return { table: name, parts: Number(parts), rows: Number(rows), checksum, days }
  })
}

async function readDamage(
  client: ClickHouseClient,
  name: { readonly database: string; readonly table: string },
): Promise<string[]> {
  const parts = await selectRows<{ part_path: string; is_passed: number; message: string }>(client, {
    query: `CHECK TABLE ${quotedTable(name)}`,
    params: {},
    settings: { check_query_single_value_result: 0 },
    signal: AbortSignal.timeout(CHECK_TIMEOUT_MS),
  })
  return parts.filter(part => !part.is_passed).map(({ part_path, message }) => `${part_path}: ${message}`)
}
