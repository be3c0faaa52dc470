import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { createClusterClient } from '../../../clickhouse/cluster/cluster.ts'
import { migrateCluster } from '../../../clickhouse/migrate/migrate-cluster.ts'
import { SchemaWatch } from '../../../clickhouse/migrate/schema-watch.ts'
import {
  type ClickHouseCluster,
  startClickHouseCluster,
  TEST_CLUSTER,
} from '../../support/cluster/clickhouse-cluster.ts'
import { until } from '../../support/until.ts'

const DATABASE = 'penstock'
const logger = pino({ level: 'silent' })
let cluster: ClickHouseCluster
let clients: ClickHouseClient[]
const closing: (() => unknown)[] = []

beforeAll(async () => {
  cluster = await startClickHouseCluster()
  clients = cluster.shards.map(({ url }) => createClickHouse({ url }))
  closing.push(...clients.map(client => () => client.close()))
})
afterAll(async () => {
  for (const close of closing.reverse()) await close()
  await cluster?.stop()
})

const addresses = () => cluster.shards.map(({ url }) => [url])
const hosts = () => cluster.shards.map(({ url }) => new URL(url).host)

function migrateAll(log = logger): Promise<void> {
  const servers = clients.map((client, shard) => ({ shard, replica: 0, host: hosts()[shard] ?? '', client }))
  const form = { name: TEST_CLUSTER, addresses: addresses(), isReplicated: false }
  return migrateCluster(servers, { database: DATABASE, retentionDays: 30, logger: log, cluster: form, mapDelayMs: 0 })
}

it('a table that one shard lacks is named with its server, and made again there', async () => {
  await migrateAll()
  const held = new Map<string, string>()
  const clickhouse = createClusterClient({ addresses: addresses(), database: DATABASE, isReplicated: false, held })
  const watch = new SchemaWatch({ clickhouse, database: DATABASE, logger, held }, { everyMs: 50, againMs: 50 })
  closing.push(
    () => clickhouse.close(),
    () => watch.stop(),
  )
  const untilFault = (fault: string | undefined) => until(`the fault is ${fault}`, () => watch.fault === fault)
  await untilFault(undefined)

  const [, second] = clients
  await second?.command({ query: `DROP TABLE ${DATABASE}.logs SYNC` })
  await untilFault(`clickhouse: ${hosts()[1]}: the table logs is missing: run npm run migrate`)
  const lines: { host?: string; msg: string }[] = []
  await migrateAll(pino({ base: null }, { write: line => void lines.push(JSON.parse(line)) }))
  expect(lines).toContainEqual(
    expect.objectContaining({ host: hosts()[1], msg: 'made the table logs again: its rows are lost' }),
  )
  await untilFault(undefined)

  await second?.command({ query: `DROP TABLE ${DATABASE}_cluster.spans SYNC` })
  await untilFault(`clickhouse: ${hosts()[1]}: the table ${DATABASE}_cluster.spans is missing: run npm run migrate`)
  await migrateAll()
  await untilFault(undefined)
})
