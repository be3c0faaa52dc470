import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, onEachShard } from '../../../clickhouse/client.ts'
import { createClusterClient } from '../../../clickhouse/cluster/cluster.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { migrateCluster } from '../../../clickhouse/migrate/migrate-cluster.ts'
import { selectTraceColumns } from '../../../clickhouse/queries/traces/select-trace-columns.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import {
  type ClickHouseCluster,
  startClickHouseCluster,
  TEST_CLUSTER,
} from '../../support/cluster/clickhouse-cluster.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { insertSpans } from '../../support/services/api.ts'

const DATABASE = 'penstock'
const OPTIONS = { database: DATABASE, retentionDays: 30, logger: pino({ level: 'silent' }) }

let cluster: ClickHouseCluster
const open: ClickHouseClient[] = []

beforeAll(async () => {
  cluster = await startClickHouseCluster()
})
afterAll(async () => {
  for (const client of open) await client.close()
  await cluster?.stop()
})

function connect(url: string, database?: string): ClickHouseClient {
  const client = createClickHouse({ url, ...(database !== undefined && { database }) })
  open.push(client)
  return client
}

const addresses = () => cluster.shards.map(({ url }) => [url])

function migrateTo(places: readonly string[][], now = Date.now): Promise<void> {
  const servers = places.map(([url = ''], shard) => ({
    shard,
    replica: 0,
    host: new URL(url).host,
    client: connect(url),
  }))
  const form = { name: TEST_CLUSTER, addresses: places, isReplicated: false }
  return migrateCluster(servers, { ...OPTIONS, cluster: form, now })
}

it('a single server becomes the first shard, and its traces are still read when rows are divided', async () => {
  const [[single = ''] = []] = addresses()
  await migrate(connect(single), OPTIONS)
  const before = randomBytes(16).toString('hex')
  await insertSpans(connect(single, DATABASE), [{ traceId: before, spanId: '0000000000000001' }])

  await migrateTo(addresses())
  const waiting = createClusterClient({ addresses: addresses(), database: DATABASE, isReplicated: false })
  open.push(waiting)
  // Processes that read traces learn of the second shard before workers fill it.
  expect(await waiting.shards?.active()).toBe(1)

  await onEachShard(waiting, shard => shard.command({ query: 'TRUNCATE TABLE shard_maps' }))
  await migrateTo(addresses(), () => Date.now() - HOUR_MS)
  const client = connectDatabase(cluster.url, DATABASE)
  open.push(client)
  expect(await client.shards?.active()).toBe(2)
  const after = Array.from({ length: 24 }, () => randomBytes(16).toString('hex'))
  await insertSpans(
    client,
    after.map(traceId => ({ traceId, spanId: '0000000000000001' })),
  )
  for (const traceId of [before, ...after]) {
    const key = { workspaceId: 'ws_1', traceId }
    let rows = 0
    await selectTraceColumns(client, key, { texts: 'cut', maxRows: 10 }, () => rows++, AbortSignal.timeout(20_000))
    expect(rows).toBe(1)
  }
  const [first = 0, second = 0] = await onEachShard(client, async shard => {
    const result = await shard.query({ query: 'SELECT count() AS n FROM spans', format: 'JSONEachRow' })
    return Number((await result.json<{ n: string }>())[0]?.n)
  })
  expect([first + second, Math.min(first, second) > 0]).toEqual([25, true])
})

it('refuses fewer shards, another order, and a cluster that the servers do not have', async () => {
  const [first = [], second = []] = addresses()
  await migrateTo([first, second])
  await expect(migrateTo([first])).rejects.toThrow('has 2 shards, but CLICKHOUSE_URL has 1')
  await expect(migrateTo([second, first])).rejects.toThrow(/is the shard 2 of shards, but has the place of 1/)
  const servers = [{ shard: 0, replica: 0, host: 'first', client: connect(first[0] ?? '') }]
  const other = { name: 'other', addresses: [first], isReplicated: false }
  await expect(migrateCluster(servers, { ...OPTIONS, cluster: other })).rejects.toThrow('has no cluster other')
})

it('refuses to replicate the tables of a cluster that are not', async () => {
  const servers = addresses().map(([url = ''], shard) => ({ shard, replica: 0, host: url, client: connect(url) }))
  const replicated = { name: TEST_CLUSTER, addresses: addresses(), isReplicated: true }
  await expect(migrateCluster(servers, { ...OPTIONS, cluster: replicated })).rejects.toThrow('are not replicated')
})
