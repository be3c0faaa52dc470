import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { clusterForm } from '../../../clickhouse/migrate/cluster-form.ts'
import { fillPlaceholders, readMigrations } from '../../../clickhouse/migrate/migration-files.ts'
import { type ClickHouseCluster, startClickHouseCluster } from '../../support/cluster/clickhouse-cluster.ts'
import { startZooKeeper, type ZooKeeper, zooKeeperFault } from '../../support/cluster/zookeeper.ts'

const MIGRATIONS = fileURLToPath(new URL('../../../clickhouse/migrations', import.meta.url))
const DATABASE = 'penstock'

const fault = zooKeeperFault()
if (fault !== undefined) console.warn(`the tables of replicated shards are not checked: ${fault}`)

let keeper: ZooKeeper
let cluster: ClickHouseCluster
const clients: ClickHouseClient[] = []

beforeAll(async () => {
  if (fault !== undefined) return
  keeper = await startZooKeeper()
  cluster = await startClickHouseCluster({ config: keeper.config })
  clients.push(...cluster.shards.map(({ url }) => createClickHouse({ url })))
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await cluster?.stop()
  await keeper?.stop()
})

/**
 * The server of these tests is the one of clickhouse-local, which replicates nothing: its tables stay read-only, so that migrations
 * that alter them cannot be applied. What is checked is that a real ZooKeeper accepts each table.
 */
describe.skipIf(fault !== undefined)('the replicated form of the migrations', () => {
  it('creates each table with a path of its shard and a replica of its own in ZooKeeper', async () => {
    const values = new Map([
      ['database', DATABASE],
      ['retention_days', '30'],
    ])
    const migrations = await readMigrations(MIGRATIONS)
    const tables = migrations
      .flatMap(({ statements }) => statements)
      .filter(statement => statement.startsWith('CREATE TABLE'))
    for (const client of clients) {
      await client.command({ query: `CREATE DATABASE ${DATABASE}` })
      for (const table of tables) {
        const form = clusterForm(table, { name: 'prod', isReplicated: true }, { shard: 0, replica: 0 }) ?? ''
        await client.command({
          query: fillPlaceholders(form, values),
          http_headers: { 'X-ClickHouse-Database': DATABASE },
        })
      }
    }
    for (const [shard, client] of clients.entries()) {
      const result = await client.query({
        query: `SELECT table, zookeeper_path AS path, replica_name AS replica FROM system.replicas
                WHERE database = '${DATABASE}' ORDER BY table`,
        format: 'JSONEachRow',
      })
      const replicas = await result.json<{ table: string; path: string; replica: string }>()
      expect(replicas).toHaveLength(tables.length)
      for (const { table, path, replica } of replicas) {
        expect([path, replica]).toEqual([`/clickhouse/tables/prod/${shard}/${DATABASE}/${table}`, '0'])
      }
    }
    // A replicated table has about thirty nodes.
    expect(await keeper.nodes()).toBeGreaterThan(10 * clients.length * tables.length)
  })
})
