import { createHash } from 'node:crypto'
import type { ClickHouseClient } from '@clickhouse/client'
import { quoteIdentifier } from '../client.ts'
import { type ShardKeyColumn, shardExpression } from '../cluster/shard-keys.ts'
import { CLUSTER_PARTS_TABLE, clusterDatabase, SHARD_MAPS_TABLE } from '../cluster/shard-maps.ts'

interface LocalTable {
  readonly name: string
  readonly columns: readonly (ShardKeyColumn & { readonly defaultText: string })[]
}

/**
 * Creates the tables of a server that read all shards, or brings them to the columns of the tables on its shard. They have no rows
 * of their own: nothing is inserted through them.
 */
export async function createClusterTables(client: ClickHouseClient, database: string, cluster: string): Promise<void> {
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
