import type { ClickHouseClient } from '../client.ts'
import { backedUpTables } from './backed-up-tables.ts'
import { type BackupPlace, quotedPlace, quotedTable, runOperation, runStatement } from './operation.ts'

/**
 * Writes the tables of one server, or of one replica of a shard, to a place that has no backup yet. The server takes the parts of
 * each table as they are when it begins, while inserts and merges continue. There must be a table. Throws a TransientError if the
 * backup fails; its files may be there in part then.
 */
export async function backUpTables(client: ClickHouseClient, database: string, place: BackupPlace): Promise<void> {
  const tables = await backedUpTables(client, database)
  // A replica may lack rows that most of the others have confirmed.
  for (const { table } of tables.filter(({ isReplicated }) => isReplicated)) {
    await runStatement(client, `SYSTEM SYNC REPLICA ${quotedTable({ database, table })} LIGHTWEIGHT`)
  }
  const names = tables.map(({ table }) => `TABLE ${quotedTable({ database, table })}`)
  await runOperation(client, `BACKUP ${names.join(', ')} TO ${quotedPlace(place)}`)
}
