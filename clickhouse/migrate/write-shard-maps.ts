import type { ClickHouseClient } from '@clickhouse/client'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { SHARD_MAPS_QUERY, SHARD_MAPS_TABLE, type ShardMap } from '../cluster/shard-maps.ts'
import { quoteIdentifier } from '../quote.ts'
import type { ClusterServer } from './check-cluster.ts'

/** Options of `writeShardMaps`. */
interface ShardMapOptions {
  readonly database: string
  readonly shards: number
  /** After this time, nothing that was stored by an earlier map is kept. */
  readonly keptMs: number
  /** Time until a map begins that follows another one. */
  readonly delayMs: number
  readonly now: () => number
}

/**
 * Writes to each server since when rows are divided between how many shards, and the number of its own shard. A map that another
 * run began to write is completed. Rows of a single server, which was there before the cluster, are those of the first shard.
 */
export async function writeShardMaps(servers: readonly ClusterServer[], options: ShardMapOptions): Promise<void> {
  const { database, shards, now } = options
  const known = new Map<number, number>()
  const mapsOfServers = new Map<ClusterServer, ShardMap[]>()
  for (const server of servers) {
    const maps = await mapsOf(server, database)
    mapsOfServers.set(server, maps)
    for (const { shards, beginsAtMs } of maps) known.set(shards, Math.min(beginsAtMs, known.get(shards) ?? Infinity))
  }
  const before = Math.max(0, ...known.keys())
  if (before > shards)
    throw new PermanentError(
      `rows are divided between ${before} shards, and CLICKHOUSE_URL has ${shards}: name all of them`,
    )
  if (before === 0 && (await hasRows(servers, database))) known.set(1, 0)
  if (!known.has(shards)) known.set(shards, known.size === 0 ? 0 : now() + options.delayMs)
  for (const [server, maps] of mapsOfServers) {
    const missing = [...known].filter(([shards]) => !maps.some(map => map.shards === shards))
    if (missing.length === 0) continue
    await server.client.insert({
      table: `${quoteIdentifier(database)}.${SHARD_MAPS_TABLE}`,
      values: missing.map(([shards, beginsAtMs]) => ({ shard: server.shard, shards, begins_at: beginsAtMs })),
      format: 'JSONEachRow',
      clickhouse_settings: { async_insert: 0 },
    })
  }
  await forgetOldMaps(servers, known, options)
}

async function mapsOf({ client, shard, host }: ClusterServer, database: string): Promise<ShardMap[]> {
  const name = `${quoteIdentifier(database)}.${SHARD_MAPS_TABLE}`
  await client.command({
    query: `CREATE TABLE IF NOT EXISTS ${name}
            (shard UInt32, shards UInt32, begins_at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY shards`,
  })
  const result = await client.query({
    query: SHARD_MAPS_QUERY.replace(`FROM ${SHARD_MAPS_TABLE}`, `FROM ${name}`),
    format: 'JSONEachRow',
    clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
  })
  const maps = await result.json<ShardMap>()
  const other = maps.find(map => map.shard !== shard)
  if (other !== undefined) {
    throw new PermanentError(
      `${host} is the shard ${other.shard + 1} of ClickHouse, but has the place of ${shard + 1} in CLICKHOUSE_URL`,
    )
  }
  return maps
}

/** Returns whether the first shard has rows that were stored without a map, which is so if it was a single server. */
async function hasRows(servers: readonly ClusterServer[], database: string): Promise<boolean> {
  const result = await servers[0]?.client.query({
    query: `SELECT 1 FROM system.parts WHERE active AND rows > 0 AND database = {database: String}
              AND table NOT LIKE 'schema\\_migrations%' AND table != '${SHARD_MAPS_TABLE}' LIMIT 1`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  return ((await result?.json()) ?? []).length > 0
}

async function forgetOldMaps(
  servers: readonly ClusterServer[],
  known: ReadonlyMap<number, number>,
  { database, keptMs, now }: ShardMapOptions,
): Promise<void> {
  const inOrder = [...known].sort(([a], [b]) => a - b)
  const old = inOrder.flatMap(([shards], i) => {
    const follower = inOrder[i + 1]
    return follower !== undefined && follower[1] < now() - keptMs ? [shards] : []
  })
  if (old.length === 0) return
  for (const { client } of servers as readonly { client: ClickHouseClient }[]) {
    await client.command({
      query: `DELETE FROM ${quoteIdentifier(database)}.${SHARD_MAPS_TABLE} WHERE shards IN (${old.join(', ')})`,
    })
  }
}
