import type { ClickHouseClient } from '../client.ts'
import { type BackupPlace, quotedPlace, quotedTable, runOperation } from './operation.ts'

/** A backup of one server. */
interface TablesBackup {
  /** Database of the tables when they were backed up. */
  readonly database: string
  readonly tables: readonly string[]
  readonly place: BackupPlace
}

/**
 * Adds the rows of a backup to the tables of a database, which the migrations of this version have made. Views see none of these
 * rows: what they have filled is in the backup, too. Throws a TransientError if it fails; some tables may have their rows then.
 */
export async function restoreTables(client: ClickHouseClient, database: string, backup: TablesBackup): Promise<void> {
  const tables = backup.tables.map(table => {
    return `TABLE ${quotedTable({ database: backup.database, table })} AS ${quotedTable({ database, table })}`
  })
  await runOperation(client, `RESTORE ${tables.join(', ')} FROM ${quotedPlace(backup.place)}`, [
    'allow_different_table_def = 1',
    'allow_non_empty_tables = 1',
  ])
}
