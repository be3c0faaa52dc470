import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { saveRequestCounts } from '../../../clickhouse/queries/audit/save-request-counts.ts'
import { MIN_REQUEST_COST } from '../../../ingest/admission/request-cost.ts'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { PARTITIONS_KEY, readRegistry } from '../../../shared/queue/registry/registry.ts'
import { readWatermarks } from '../../../shared/queue/watermark.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/9`
const SURFACE = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
let redis: Redis
let database: TestDatabase
let clickhouse: ClickHouseClient
let key: string
const edges: TestEdge[] = []
const pools: TestPools[] = []

beforeAll(async () => {
  redis = new Redis(redisUrl)
  database = await createTestDatabase(services.clickhouseUrl, `partitions_${process.pid}`)
  clickhouse = createClickHouse({ url: services.clickhouseUrl, database: database.name })
})

beforeEach(async () => {
  await redis.flushdb()
  key = await issueKey(createDirectory(redis), SURFACE)
  for (const table of ['spans', 'request_counts']) await clickhouse.command({ query: `TRUNCATE TABLE ${table}` })
})

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.stop()
  for (const edge of edges.splice(0)) await edge.stop()
})

afterAll(async () => {
  redis?.disconnect()
  await clickhouse?.close()
  await database?.drop()
})

const queueAt = (name: QueueName, partition: number) => onOneServer(redis).at(name, partition)

/** Starts an edge that writes to this number of partitions, and waits until it has registered them and counts all of them. */
async function openEdge(partitions: number, settings: Record<string, string> = {}): Promise<TestEdge> {
  const logged: string[] = []
  const logger = pino({ level: 'info' }, { write: line => void logged.push(line) })
  const own = { QUEUE_PARTITIONS: String(partitions), COMMIT_TIMEOUT_MS: '5000', ...settings }
  const edge = await startEdge(redisUrl, own, logger)
  edges.push(edge)
  await until('the partitions are registered', async () => (await redis.hlen(PARTITIONS_KEY)) >= partitions)
  // Admission follows the registry, and knows the first partition from the beginning.
  const counted = `"numbers":[0,${Array.from({ length: partitions - 1 }, (_, i) => i + 1).join()}`
  await until('admission counts them', () => partitions === 1 || logged.some(line => line.includes(counted)))
  return edge
}

function startWorkers(): TestPools {
  const started = startPools(QUEUES, { ...services, redisUrl }, database.name)
  pools.push(started)
  return started
}

async function post(edge: TestEdge, name: string | undefined): Promise<void> {
  const span = {
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: 'eee19b7ec3c1b174',
    name,
    startTimeUnixNano: '1790000000000000000',
  }
  const body =
    name === undefined ? '{"broken' : JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] })
  const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
}

/** Sends spans one after the other until each of these partitions has accepted one. Returns the names of all spans. */
async function postToAll(edge: TestEdge, partitions: readonly number[], prefix: string): Promise<string[]> {
  const names: string[] = []
  await until('each partition has accepted a request', async () => {
    names.push(`${prefix}${names.length}`)
    await post(edge, names.at(-1))
    const accepted = await Promise.all(
      partitions.map(p => redis.hget(queueAt('traces', p).keys.flow, 'acceptedPayloads')),
    )
    return accepted.every(count => Number(count) > 0)
  })
  return names
}

const storedNames = async () =>
  (await database.rows<{ name: string }>('SELECT name FROM spans')).map(({ name }) => name)

async function untilStored(names: readonly string[]): Promise<void> {
  await until('all spans are stored', async () => (await storedNames()).length >= names.length)
  expect((await storedNames()).sort()).toEqual([...names].sort())
}

it('spreads commits over the partitions, and stores each request once', async () => {
  const edge = await openEdge(4)
  startWorkers()
  const names = await postToAll(edge, [0, 1, 2, 3], 'a')
  await untilStored(names)
}, 60_000)

it('stores what is in partitions that were added, and in those that are not written to any more', async () => {
  const before = await openEdge(2)
  startWorkers()
  const names = await postToAll(before, [0, 1], 'before')
  const after = await openEdge(5)
  names.push(...(await postToAll(after, [0, 1, 2, 3, 4], 'raised')))
  // Edges with different numbers run beside each other.
  names.push(...(await postToAll(before, [0, 1], 'both')))
  const [, raised] = edges.splice(0)
  await before.stop()
  await raised?.stop()
  const lowered = await openEdge(1)
  names.push(...(await postToAll(lowered, [0], 'lowered')))
  await untilStored(names)
}, 60_000)

it('forgets a partition once no edge has registered it for an hour and nothing is in it (register-partitions.lua, read-partitions.lua, forget-partition.lua)', async () => {
  const edge = await openEdge(3)
  const queues = onOneServer(redis)
  await postToAll(edge, [0, 1, 2], 'a')
  await edge.stop()
  edges.length = 0
  expect(await queues.retire()).toEqual([])
  const hourAgo = async (partition: number) => redis.hset(PARTITIONS_KEY, partition, `1 ${Date.now() - 1_000}`)
  for (const partition of [0, 1, 2]) await hourAgo(partition)
  expect(await queues.retire()).toEqual([])
  startWorkers()
  await until(
    'all is stored',
    async () => (await redis.exists(...[0, 1, 2].map(p => queueAt('traces', p).keys.pending))) === 0,
  )
  // Counts of requests leave Redis hours after their hour.
  await saveRequestCounts(queues, clickhouse, Date.now() + DAY_MS)
  await until('nothing is left', async () => {
    await queues.retire()
    return (await readRegistry(redis)).partitions.length === 1
  })
  expect((await readRegistry(redis)).partitions.map(({ partition }) => partition)).toEqual([0])
}, 60_000)

it('passes nothing that waits in any partition with a watermark', async () => {
  const edge = await openEdge(3)
  const registeredAt = (await readWatermarks(onOneServer(redis), [SURFACE])).readAtMs
  const names = await postToAll(edge, [0, 1, 2], 'a')
  const waiting = await readWatermarks(onOneServer(redis), [SURFACE])
  expect(waiting.surfaces[0]?.settledBeforeMs.traces).toBeLessThan(waiting.readAtMs)
  expect(waiting.surfaces[0]?.settledBeforeMs.traces).toBeGreaterThanOrEqual(registeredAt)
  startWorkers()
  await untilStored(names)
  await until('the watermark is current', async () => {
    const { readAtMs, surfaces } = await readWatermarks(onOneServer(redis), [SURFACE])
    return surfaces[0]?.settledBeforeMs.traces === readAtMs
  })
}, 60_000)

it('refuses a surface by the sum of what it has in all partitions', async () => {
  const limits = { QUEUE_MAX_COST: String(40 * MIN_REQUEST_COST) }
  const edge = await openEdge(4, limits)
  const send = () =>
    post(edge, 'a').then(
      () => true,
      () => false,
    )
  await until('the surface is refused', async () => !(await send()))
  const accepted = await Promise.all(
    [0, 1, 2, 3].map(async p => Number((await redis.hget(queueAt('traces', p).keys.flow, 'acceptedPayloads')) ?? 0)),
  )
  expect(accepted.filter(count => count > 0).length).toBeGreaterThan(1)
  expect(accepted.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(30)
  const other = await openEdge(1, limits)
  const sum = accepted.reduce((total, count) => total + count, 0)
  const shown = new RegExp(`^penstock_queue_payloads\\{[^}]*queue="traces"[^}]*\\} ${sum}$`, 'm')
  await until('another edge knows the sum', async () => shown.test(await other.metrics()))
}, 60_000)

it('counts the requests of an hour over all partitions, and moves letters within their partition', async () => {
  const edge = await openEdge(3)
  const names = await postToAll(edge, [0, 1, 2], 'a')
  const letters = async (partition: number) =>
    Number(await redis.hget(queueAt('dead-letters', partition).keys.flow, 'acceptedPayloads'))
  startWorkers()
  let broken = 0
  await until('another partition than the first has had a letter', async () => {
    await post(edge, undefined)
    broken++
    return (await letters(1)) + (await letters(2)) > 0
  })
  await untilStored(names)
  await saveRequestCounts(onOneServer(redis), clickhouse, Date.now())
  const [counted] = await database.rows<{ sum: string }>(
    `SELECT sum(n) AS sum FROM (SELECT max(requests) AS n FROM request_counts WHERE outcome = 'accepted'
     GROUP BY workspace_id, surface_id, signal, received_hour, place)`,
  )
  expect(Number(counted?.sum)).toBe(names.length + broken)
}, 60_000)
