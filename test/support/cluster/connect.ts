import { pino } from 'pino'
import { type ClickHouseClient, createClickHouse, onEachShard, onFirstShard } from '../../../clickhouse/client.ts'
import { createClusterClient } from '../../../clickhouse/cluster/cluster.ts'
import { clusterDatabase } from '../../../clickhouse/cluster/shard-maps.ts'
import { migrateCluster } from '../../../clickhouse/migrate/migrate-cluster.ts'
import { clickhouseAddresses } from '../../../shared/runtime/config.ts'
import { migrateQuickly } from '../migrate-quickly.ts'
import { TEST_CLUSTER } from './clickhouse-cluster.ts'

/** Whether tests of this address run on a cluster instead of one server. */
export function isCluster(url: string): boolean {
  return url.includes(',')
}

/** Returns the settings besides CLICKHOUSE_URL with which a process uses these servers. */
export function clusterSettings(url: string): Record<string, string> {
  return isCluster(url) ? { CLICKHOUSE_CLUSTER: TEST_CLUSTER } : {}
}

/** Creates a database with the schema. */
export async function migrateDatabase(url: string, database: string): Promise<void> {
  const addresses = clickhouseAddresses(url)
  const options = { database, retentionDays: 30, logger: pino({ level: 'silent' }) }
  const servers = addresses.map(([url = ''], shard) => ({
    shard,
    replica: 0,
    host: url,
    client: createClickHouse({ url }),
  }))
  const cluster = { name: TEST_CLUSTER, addresses, isReplicated: false }
  if (isCluster(url)) await migrateCluster(servers, { ...options, cluster, mapDelayMs: 0 })
  else for (const { client } of servers) await migrateQuickly(client, options)
  for (const { client } of servers) await client.close()
}

/**
 * Returns a client of a database. With a cluster, it also accepts what only tests do: inserts by SQL are divided by the sharding
 * keys of the tables that read all shards, queries read them, and deletions and other changes are made on every shard.
 */
export function connectDatabase(url: string, database: string): ClickHouseClient {
  if (!isCluster(url)) return createClickHouse({ url, database })
  const addresses = clickhouseAddresses(url)
  const cluster = createClusterClient({ addresses, database, isReplicated: false })
  const [[first = ''] = []] = addresses
  const settings = { distributed_foreground_insert: 1, distributed_product_mode: 'global' } as const
  const all = createClickHouse({ url: first, database: clusterDatabase(database), settings })
  const [insert, closeAll] = [all.command.bind(all), all.close.bind(all)]
  const command: ClickHouseClient['command'] = async params => {
    if (/^\s*INSERT INTO deleted_rows\b/i.test(params.query)) {
      return onFirstShard(cluster, shard => shard.command(params))
    }
    // A copy of rows stays on their shard.
    if (/^\s*INSERT\b(?! INTO \w+ SELECT \*)/i.test(params.query)) return insert(params)
    const [result] = await onEachShard(cluster, shard => shard.command(params))
    return result as NonNullable<typeof result>
  }
  const close = async () => {
    await Promise.all([cluster.close(), closeAll()])
  }
  return Object.assign(all, { reads: cluster.reads, command, close, ...(cluster.shards && { shards: cluster.shards }) })
}
