import type { ClickHouseClient } from '../client.ts'
import { SHARD_MAPS_TABLE } from '../cluster/shard-maps.ts'
import { selectRows } from '../select.ts'

/** A table with rows of its own. */
interface BackedUpTable {
  readonly table: string
  readonly isReplicated: boolean
}

const READ_TIMEOUT_MS = 30_000
/** Tables that state to which shard and installation a server belongs. They may have rows before anything is stored. */
const OF_THE_SERVER = [SHARD_MAPS_TABLE, 'installation']

/**
 * Returns the tables of a server that a backup contains: all that have rows of their own, but the journal of the migrations. Views
 * and the tables that read all shards have none, and the migrations make them.
 */
export async function backedUpTables(client: ClickHouseClient, database: string): Promise<BackedUpTable[]> {
  const rows = await selectRows<{ name: string; engine: string }>(client, {
    query: `SELECT name, engine FROM system.tables
            WHERE database = {database: String} AND endsWith(engine, 'MergeTree') AND NOT startsWith(name, 'schema_migrations')
            ORDER BY name`,
    params: { database },
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  })
  return rows.map(({ name, engine }) => ({ table: name, isReplicated: engine.startsWith('Replicated') }))
}

/** Returns the tables of a server in which something is stored, in the order of their names. */
export async function tablesWithRows(client: ClickHouseClient, database: string): Promise<string[]> {
  const rows = await selectRows<{ table: string }>(client, {
    query: `SELECT DISTINCT table FROM system.parts
            WHERE active AND rows > 0 AND database = {database: String}
              AND NOT startsWith(table, 'schema_migrations') AND NOT has({ofTheServer: Array(String)}, table)
            ORDER BY table`,
    params: { database, ofTheServer: OF_THE_SERVER },
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  })
  return rows.map(({ table }) => table)
}

/** Returns whether a server has a disk with this name. */
export async function hasDisk(client: ClickHouseClient, name: string): Promise<boolean> {
  const disks = await selectRows(client, {
    query: 'SELECT 1 FROM system.disks WHERE name = {name: String}',
    params: { name },
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
  })
  return disks.length > 0
}
