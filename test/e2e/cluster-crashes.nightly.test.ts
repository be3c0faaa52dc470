import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { shardExpression } from '../../clickhouse/cluster/shard-keys.ts'
import { type ClickHouseCluster, startClickHouseCluster } from '../support/cluster/clickhouse-cluster.ts'
import { connectDatabase } from '../support/cluster/connect.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { CRASH_SETTINGS, killDuring, SpanExports } from '../support/span-exports.ts'

let cluster: ClickHouseCluster
let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  const startClickHouse = async () => {
    cluster = await startClickHouseCluster()
    return cluster
  }
  stack = await startStack(CRASH_SETTINGS, { services: { startClickHouse } })
  clickhouse = connectDatabase(cluster.url, 'penstock')
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

describe('two shards of ClickHouse', () => {
  it('have every acknowledged span exactly once when each of them and the workers are killed', async () => {
    const stream = new SpanExports(stack, clickhouse)
    for (const victim of [...cluster.shards, stack.workers, ...cluster.shards]) await killDuring(stream, victim)
    await stream.stop()
    await stream.expectStoredOnce()
  })

  it('have the rows of a trace on one shard, with its exceptions and what views derive from both', async () => {
    for (const table of ['spans', 'exceptions', 'trace_buckets', 'ingest_log']) {
      const shards = await Promise.all([0, 1].map(shard => rowsByShard(table, shard)))
      for (const [shard, rows] of shards.entries()) {
        expect({ table, shards: rows.map(row => row.shard) }).toEqual({ table, shards: [shard] })
        expect(Number(rows[0]?.count)).toBeGreaterThan(0)
      }
    }
  })
})

/** Counts the rows on a shard by the shard that the sharding key of the table names. */
async function rowsByShard(table: string, shard: number): Promise<{ shard: number; count: string }[]> {
  const rows = await clickhouse.shards?.onShard(shard, async client => {
    const columns = await client.query({
      query: 'SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table: String}',
      query_params: { table },
      format: 'JSONEachRow',
    })
    const key = shardExpression(table, await columns.json<{ name: string; type: string }>())
    const result = await client.query({
      query: `SELECT toUInt8(${key} % 2) AS shard, count() AS count FROM ${table} GROUP BY shard ORDER BY shard`,
      format: 'JSONEachRow',
    })
    return result.json<{ shard: number; count: string }>()
  })
  return rows ?? []
}
