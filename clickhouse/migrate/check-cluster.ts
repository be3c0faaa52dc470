import { PermanentError } from '../../shared/runtime/errors.ts'
import type { ClickHouseClient } from '../client.ts'
import type { ConfiguredCluster } from '../connect.ts'
import type { ServerPlace } from './cluster-form.ts'

/** A server of a cluster with its client. */
export interface ClusterServer extends ServerPlace {
  /** Address without credentials, for messages. */
  readonly host: string
  readonly client: ClickHouseClient
}

interface Member {
  readonly shard: number
  readonly isLocal: number
  readonly weight: number
}

/**
 * Throws a PermanentError if the servers are not the cluster that the settings name: another number of shards, another order, or
 * tables that are not replicated as they should be.
 */
export async function checkCluster(
  servers: readonly ClusterServer[],
  { name, addresses, isReplicated }: ConfiguredCluster,
  database: string,
): Promise<void> {
  const macros = new Map<string, string>()
  for (const { client, host, shard } of servers) {
    const fail = (text: string): never => {
      throw new PermanentError(`${host}: ${text}`)
    }
    const members = await membersOf(client, name)
    const shards = new Set(members.map(member => member.shard)).size
    if (shards === 0) fail(`has no cluster ${name}: add it to remote_servers, or correct CLICKHOUSE_CLUSTER`)
    if (shards !== addresses.length) fail(`${name} has ${shards} shards, but CLICKHOUSE_URL has ${addresses.length}`)
    const local = members.find(({ isLocal }) => isLocal === 1)
    if (local !== undefined && local.shard !== shard + 1) {
      fail(`is the shard ${local.shard} of ${name}, but has the place of ${shard + 1} in CLICKHOUSE_URL`)
    }
    if (members.some(({ weight }) => weight !== 1)) fail(`shards of ${name} have weights: leave them out`)
    if (isReplicated) {
      const { shard: ofShard, replica } = await macrosOf(client)
      if (ofShard === undefined || replica === undefined) fail('has no macros shard and replica, which its tables need')
      const known = macros.get(`shard ${shard}`) ?? ofShard ?? ''
      if (known !== ofShard) fail(`has the macro shard ${ofShard}, but others of its shard have ${known}`)
      if (macros.has(`${ofShard}/${replica}`)) fail(`another server has the macros ${ofShard} and ${replica} too`)
      macros.set(`shard ${shard}`, known).set(`${ofShard}/${replica}`, host)
    }
    const wrong = (await enginesOf(client, database)).find(engine => engine.startsWith('Replicated') !== isReplicated)
    if (wrong !== undefined) {
      fail(
        isReplicated
          ? `tables of ${database} are not replicated: choose another CLICKHOUSE_DATABASE and copy the rows`
          : `tables of ${database} are replicated: set CLICKHOUSE_REPLICATED=on`,
      )
    }
  }
}

async function membersOf(client: ClickHouseClient, cluster: string): Promise<Member[]> {
  const result = await client.query({
    query: `SELECT shard_num AS shard, is_local AS isLocal, shard_weight AS weight FROM system.clusters
            WHERE cluster = {cluster: String}`,
    query_params: { cluster },
    format: 'JSONEachRow',
  })
  return result.json<Member>()
}

async function macrosOf(client: ClickHouseClient): Promise<{ readonly [macro: string]: string | undefined }> {
  const result = await client.query({ query: 'SELECT macro, substitution FROM system.macros', format: 'JSONEachRow' })
  const rows = await result.json<{ macro: string; substitution: string }>()
  return Object.fromEntries(rows.map(({ macro, substitution }) => [macro, substitution]))
}

async function enginesOf(client: ClickHouseClient, database: string): Promise<string[]> {
  const result = await client.query({
    query: `SELECT DISTINCT engine FROM system.tables WHERE database = {database: String} AND engine LIKE '%MergeTree'
              AND NOT startsWith(name, 'schema_migrations') AND name != 'shard_maps'`,
    query_params: { database },
    format: 'JSONEachRow',
  })
  return (await result.json<{ engine: string }>()).map(({ engine }) => engine)
}
