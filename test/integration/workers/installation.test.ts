import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { claimedClickHouse } from '../../../clickhouse/claimed-clickhouse.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { readInstallation } from '../../../shared/directory/installation-record.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { adoptInstallation } from '../../../shared/installation/adopt-installation.ts'
import { newInstallation } from '../../../shared/installation/queue-losses.ts'
import { INSTALLATION_KEY } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { clusterSettings, connectDatabase } from '../../support/cluster/connect.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { issueKey, openEdge, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { startWorker, type TestWorker } from '../../support/services/worker.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`
const redis = new Redis(redisUrl)
const LONG = { deadlineMs: 60_000 }
let own: TestDatabase
let strange: TestDatabase
let ownClickHouse: ClickHouseClient
let strangeClickHouse: ClickHouseClient
let edge: TestEdge
let key: string
const running = new Set<TestWorker>()

beforeAll(async () => {
  await redis.flushdb()
  own = await createTestDatabase(services.clickhouseUrl, `installation_own_${process.pid}`)
  strange = await createTestDatabase(services.clickhouseUrl, `installation_strange_${process.pid}`)
  ownClickHouse = connectDatabase(services.clickhouseUrl, own.name)
  strangeClickHouse = connectDatabase(services.clickhouseUrl, strange.name)
  await claimedClickHouse(strangeClickHouse).claim({ id: newInstallation().id, epochs: {} })
  key = await issueKey(createDirectory(redis))
  edge = await startEdge(redisUrl)
})
afterEach(async () => {
  for (const worker of running) await stop(worker)
})
afterAll(async () => {
  await edge?.stop()
  for (const client of [ownClickHouse, strangeClickHouse]) await client?.close()
  for (const database of [own, strange]) await database?.drop()
  redis.disconnect()
})

function start(database: TestDatabase, queues: Parameters<typeof startWorker>[0] = ['traces'], settings = {}) {
  const worker = startWorker(queues, {
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    ...clusterSettings(services.clickhouseUrl),
    CLICKHOUSE_DATABASE: database.name,
    ...s3Settings(services.s3),
    ...settings,
  })
  running.add(worker)
  return worker
}

async function stop(worker: TestWorker): Promise<void> {
  running.delete(worker)
  await worker.stop()
}

async function send(count: number): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
  const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' }
  const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ ...ids, name: 'sent' }] }] }] })
  for (let left = count; left > 0; left -= 50) {
    const sent = Array.from({ length: Math.min(50, left) }, async () => {
      const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body })
      await response.arrayBuffer()
      return response.status
    })
    expect(new Set(await Promise.all(sent))).toEqual(new Set([200]))
  }
}

const spansOf = async (database: TestDatabase) =>
  Number((await database.rows<{ n: string }>('SELECT count() AS n FROM spans'))[0]?.n)
const jobsDone = async () => Number((await redis.hget(queueKeys('traces').flow, 'donePayloads')) ?? 0)
/** Returns once no worker waits for jobs: one that does takes those that are sent next. */
const untilNoneWaits = () =>
  until('no worker waits for jobs', async () => {
    const clients = String(await redis.client('LIST')).split('\n')
    return !clients.some(client => client.includes(' db=13 ') && client.includes(' cmd=bzpopmin '))
  })
/** Has each process connect again, and check its stores then. Otherwise it does so each minute. */
const endConnections = () => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')

it('a worker with the ClickHouse of another installation takes no job, and says why', async () => {
  const worker = start(own)
  await until('the worker is ready', () => worker.isReady() === true)
  const stranger = start(strange)
  await until('the other worker is not ready', () => /^ClickHouse belongs to/.test(String(stranger.isReady())))
  const id = (await readInstallation(redis))?.id
  expect(stranger.isReady()).toMatch(
    new RegExp(`^ClickHouse belongs to installation \\w{26}, the Redis of the directory to ${id}: correct the address`),
  )
  await send(1_000)
  await until('all are settled', async () => (await jobsDone()) === 1_000, LONG)
  expect(await spansOf(own)).toBe(1_000)
  expect(await spansOf(strange)).toBe(0)

  await stop(worker)
  await untilNoneWaits()
  const before = await jobsDone()
  await send(10)
  await stranger.installation.check()
  expect([await jobsDone(), await spansOf(strange)]).toEqual([before, 0])

  const stores = [claimedClickHouse(strangeClickHouse)]
  await adoptInstallation({ directory: redis, queues: onOneServer(redis), stores })
  await until('the other worker is ready', () => stranger.isReady() === true)
  await until('it stores what waits', async () => (await spansOf(strange)) === 10)
}, 120_000)

it('a worker takes no more jobs once its ClickHouse is that of another installation, and continues when it is back', async () => {
  const worker = start(own)
  await until('the worker is ready', () => worker.isReady() === true)
  const before = await spansOf(own)
  const claimed = claimedClickHouse(ownClickHouse)
  const { id, epochs = {} } = (await claimed.read()) ?? { id: '' }
  await claimed.replace({ id: newInstallation().id, epochs: {} })
  await endConnections()
  await until('the worker is not ready', () => /^ClickHouse belongs to/.test(String(worker.isReady())))
  await until('the edge is connected', () => edge.isReady() === true)
  await untilNoneWaits()
  const done = await jobsDone()
  await send(20)
  await worker.installation.check()
  expect([await jobsDone(), await spansOf(own)]).toEqual([done, before])
  await claimed.replace({ id, epochs })
  await until('the worker is ready again', () => worker.isReady() === true)
  await until('it stores what waits', async () => (await jobsDone()) === done + 20)
  expect(await spansOf(own)).toBe(before + 20)
}, 120_000)

it('a wrong bucket stops the pools that use it; one that does not answer stops no other', async () => {
  const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  try {
    const strangeId = newInstallation().id
    await objects.put(INSTALLATION_KEY, Buffer.from(JSON.stringify({ id: strangeId })), {
      contentType: 'application/json',
    })
    const stranger = start(own, ['traces', 'replay'])
    await until('it names the bucket', () =>
      String(stranger.isReady()).startsWith(`the bucket belongs to installation ${strangeId}`),
    )
    await stop(stranger)
    const before = await spansOf(own)
    const alone = start(own, ['traces', 'replay'], { S3_ENDPOINT: 'http://127.0.0.1:1' })
    await send(5)
    await until('spans are stored', async () => (await spansOf(own)) === before + 5)
    expect(alone.installation.mayUse(['bucket'])).toBe(false)
  } finally {
    await objects.deleteMany([INSTALLATION_KEY])
    objects.close()
  }
}, 60_000)

it('an edge whose Redis belong to different installations answers 503', async () => {
  const directoryUrl = `${services.redisUrl}/14`
  const directory = new Redis(directoryUrl)
  await directory.flushdb()
  await directory.set(directoryKeys.installation, JSON.stringify(newInstallation()))
  const ownKey = await issueKey(createDirectory(directory))
  const mixed = await openEdge(redisUrl, { DIRECTORY_REDIS_URL: directoryUrl })
  try {
    await until('it names both', () => /^the Redis of the queues belongs to/.test(String(mixed.isReady())))
    const headers = { 'content-type': 'application/json', 'x-service-public-key': ownKey }
    const response = await fetch(`${mixed.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body: '{}' })
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({
      code: 'INGEST_INFRA_UNAVAILABLE',
      message: expect.stringContaining('different installations'),
    })
  } finally {
    await mixed.stop()
    directory.disconnect()
  }
})
