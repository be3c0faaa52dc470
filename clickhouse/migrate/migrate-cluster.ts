import { createHash } from 'node:crypto'
import { DAY_MS } from '../../schemas/units.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type ClickHouseClient, classifyClickHouseError } from '../client.ts'
import { type ShardKeyColumn, shardExpression } from '../cluster/shard-keys.ts'
import { CLUSTER_PARTS_TABLE, clusterDatabase, MAP_DELAY_MS, SHARD_MAPS_TABLE } from '../cluster/shard-maps.ts'
import type { ConfiguredCluster } from '../connect.ts'
import { quoteIdentifier } from '../quote.ts'
import { type ClusterServer, checkCluster } from './check-cluster.ts'
import { clusterForm } from './cluster-form.ts'
import { type MigrateOptions, migrate } from './migrate.ts'
import { TABLE_SETTINGS } from './table-settings.ts'
import { writeShardMaps } from './write-shard-maps.ts'

/** Settings of the migration of a cluster. */
interface MigrateClusterOptions extends Omit<MigrateOptions, 'adapt'> {
  readonly cluster: ConfiguredCluster
  /** Time until added shards get rows; `MAP_DELAY_MS` if left out. */
  readonly mapDelayMs?: number
  readonly now?: () => number
}

/** A row may wait in Redis before it is stored, and expires with its day. */
const SLACK_DAYS = 7

/**
 * Migrates the servers of a cluster in turn. The clients are as those of `migrate`. Every server has a journal of its own, so
 * that a shard or a replica that is added later gets the same schema. Throws as `migrate` does, also if the servers are not the
 * cluster that the settings name.
 */
export async function migrateCluster(servers: readonly ClusterServer[], options: MigrateClusterOptions): Promise<void> {
  const { cluster, database, logger, tableSettings = TABLE_SETTINGS, retentionDays, now = Date.now } = options
  try {
    await checkCluster(servers, cluster, database)
    for (const server of servers) {
      await migrate(server.client, {
        ...options,
        logger: logger.child({ host: server.host }),
        tableSettings: { ...tableSettings, isReplicated: cluster.isReplicated },
        viewsNeedQuiet: cluster.addresses.some(({ length }) => length > 1),
        adapt: statement => clusterForm(statement, cluster, server),
      })
    }
    for (const { client, host } of servers) {
      await createClusterTables(client, database, { cluster: cluster.name, logger: logger.child({ host }) })
    }
    await writeShardMaps(servers, {
      database,
      shards: cluster.addresses.length,
      keptMs: (retentionDays + SLACK_DAYS) * DAY_MS,
      delayMs: options.mapDelayMs ?? MAP_DELAY_MS,
      now,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}

interface LocalTable {
  readonly name: string
  readonly columns: readonly (ShardKeyColumn & { readonly defaultText: string })[]
}

/**
 * Creates the tables of a server that read all shards, or brings them to the columns of the tables on its shard. They have no rows
 * of their own: nothing is inserted through them.
 */
async function createClusterTables(
  client: ClickHouseClient,
  database: string,
  { cluster, logger }: { readonly cluster: string; readonly logger: Logger },
): Promise<void> {
  const target = clusterDatabase(database)
  await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${quoteIdentifier(target)}` })
  const existing = await definitionsOf(client, target)
  for (const table of await localTables(client, database)) {
    const key = shardExpression(table.name, table.columns)
    const place = [cluster, database, table.name].map(text => `'${text}'`)
    const engine = `Distributed(${[...place, ...(key === undefined ? [] : [key])].join(', ')})`
    await create(table.name, `AS ${quoteIdentifier(database)}.${quoteIdentifier(table.name)}`, engine, table.columns)
  }
  const columns = '(database String, table String, partition_id String, active UInt8, max_block_number Int64)'
  await create(CLUSTER_PARTS_TABLE, columns, `Distributed('${cluster}', 'system', 'parts')`, columns)

  async function create(name: string, columns: string, engine: string, source: unknown): Promise<void> {
    const definition = createHash('sha256')
      .update(JSON.stringify([source, engine]))
      .digest('hex')
    if (existing.get(name) === definition) return
    const table = `${quoteIdentifier(target)}.${quoteIdentifier(name)}`
    await client.command({
      query: `CREATE OR REPLACE TABLE ${table} ${columns} ENGINE = ${engine} COMMENT '${definition}'`,
    })
    if (existing.size > 0) logger.info({ table: `${target}.${name}` }, 'made a table that reads all shards')
  }
}

/** Returns the tables of a database with the digests of their definitions. */
async function definitionsOf(client: ClickHouseClient, database: string): Promise<Map<string, string>> {
  const result = await client.query({
    query: 'SELECT name, comment FROM system.tables WHERE database = {database: String}',
    query_params: { database },
    format: 'JSONEachRow',
  })
  return new Map((await result.json<{ name: string; comment: string }>()).map(({ name, comment }) => [name, comment]))
}

async function localTables(client: ClickHouseClient, database: string): Promise<LocalTable[]> {
  const result = await client.query({
    query: `
      SELECT table, name, type, concat(default_kind, ' ', default_expression) AS defaultText FROM system.columns
      WHERE database = {database: String} AND table IN (
        SELECT name FROM system.tables WHERE database = {database: String} AND engine LIKE '%MergeTree'
          AND NOT startsWith(name, 'schema_migrations') AND name != '${SHARD_MAPS_TABLE}')
      ORDER BY table, position`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  const tables = Map.groupBy(
    await result.json<LocalTable['columns'][number] & { table: string }>(),
    ({ table }) => table,
  )
  return [...tables].map(([name, columns]) => ({ name, columns }))
}
