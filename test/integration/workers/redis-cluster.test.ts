import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { QueueLinks } from '../../../shared/queue/partitions/queue-links.ts'
import { QueueServers } from '../../../shared/queue/partitions/queue-servers.ts'
import { partitionSlot, partitionsOf } from '../../../shared/queue/partitions/queue-tag.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { Sweeper } from '../../../workers/queue/sweeper.ts'
import { type RedisCluster, startRedisCluster } from '../../support/cluster/redis-cluster.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const directoryRedisUrl = `${services.redisUrl}/10`
const SURFACE = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
const PARTITIONS = [1, 2, 3, 4]
let dir: string
let cluster: RedisCluster
let directory: Redis
let database: TestDatabase
let links: QueueLinks
let edge: TestEdge
let pools: TestPools
let sweeper: Sweeper
let key: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-cluster-'))
  cluster = await startRedisCluster(dir)
  directory = new Redis(directoryRedisUrl)
  await directory.flushdb()
  key = await issueKey(createDirectory(directory), SURFACE)
  database = await createTestDatabase(services.clickhouseUrl, `redis_cluster_${process.pid}`)
  const settings = { REDIS_DURABILITY: 'replicated', COMMIT_TIMEOUT_MS: '3000' }
  edge = await startEdge(cluster.url, { CONTROL_REDIS_URL: directoryRedisUrl, QUEUE_PARTITIONS: '4', ...settings })
  const addresses = { ...services, redisUrl: cluster.url, directoryRedisUrl }
  pools = startPools(QUEUES, addresses, database.name, { REDIS_DURABILITY: 'replicated', JOB_LOCK_MS: '2000' })
  const servers = new QueueServers(cluster.url)
  const logger = pino({ level: 'silent' })
  const common = servers.connectConsumer(logger)
  links = new QueueLinks({ servers, common, connect: to => connectConsumer(to, logger) })
  const jobsAt = (queue: (typeof QUEUES)[number], partition: number) =>
    createJobAdder(links.at(queue, partition), links.movesTo(queue, partition)).add
  sweeper = new Sweeper({ queues: links, jobsAt, logger }, 500)
}, 120_000)

afterAll(async () => {
  sweeper?.stop()
  await pools?.stop()
  await edge?.stop()
  links?.close()
  links?.common.disconnect()
  directory?.disconnect()
  await database?.drop()
  await cluster?.stop()
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
}, 60_000)

async function post(name: string | undefined): Promise<number> {
  const span = {
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: 'eee19b7ec3c1b174',
    name,
    startTimeUnixNano: '1790000000000000000',
  }
  const body =
    name === undefined ? '{"broken' : JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] })
  const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
  return (await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body })).status
}

const storedNames = async () => (await database.rows<{ name: string }>('SELECT name FROM spans')).map(row => row.name)

async function untilEmpty(): Promise<void> {
  await until(
    'every partition is empty',
    async () => {
      const { numbers } = await links.partitions()
      const places = QUEUES.flatMap(queue => partitionsOf(queue, numbers).map(partition => ({ queue, partition })))
      const counts = await Promise.all(
        places.map(({ queue, partition }) => links.at(queue, partition).zcard(queueKeys(queue, partition).pending)),
      )
      return counts.every(count => count === 0)
    },
    { deadlineMs: 60_000, everyMs: 100 },
  )
}

it('spreads requests over the slots of a cluster, stores each once, and moves letters within their slot', async () => {
  const acknowledged: string[] = []
  let sent = 0
  await until(
    'each partition has accepted a request and had a letter',
    async () => {
      const names = Array.from({ length: 4 }, (_, i) => `a${sent + i}`)
      sent += names.length
      const statuses = await Promise.all([...names, undefined, undefined].map(post))
      acknowledged.push(...names.filter((_, i) => statuses[i] === 200))
      const counts = await Promise.all(
        PARTITIONS.flatMap(p => [
          links.at('spans', p).hget(queueKeys('spans', p).flow, 'acceptedPayloads'),
          links.at('dead-letters', p).hget(queueKeys('dead-letters', p).flow, 'acceptedPayloads'),
        ]),
      )
      return counts.every(count => Number(count) > 0)
    },
    { deadlineMs: 60_000 },
  )
  await untilEmpty()
  expect((await storedNames()).sort()).toEqual([...acknowledged].sort())
}, 120_000)

it('keeps what it has acknowledged when a master is killed and its replica promoted, and stores it once', async () => {
  await untilEmpty()
  const before = (await storedNames()).length
  const outcomes = new Map<string, number>()
  let isOver = false
  const sending = (async () => {
    for (let i = 0; !isOver; i++) outcomes.set(`b${i}`, await post(`b${i}`).catch(() => 0))
  })()
  await until('requests are accepted', () => outcomes.size > 20)
  await cluster.failOver(partitionSlot(3))
  const served = outcomes.size
  await until(
    'requests are accepted again',
    () => [...outcomes.values()].slice(served).filter(s => s === 200).length > 20,
  )
  isOver = true
  await sending
  await untilEmpty()
  const stored = (await storedNames()).filter(name => name.startsWith('b'))
  expect(new Set(stored).size).toBe(stored.length)
  const lost = [...outcomes].filter(([name, status]) => status === 200 && !stored.includes(name))
  expect(lost).toEqual([])
  expect(stored.length).toBeGreaterThan(0)
  expect(before).toBeGreaterThan(0)
}, 180_000)
