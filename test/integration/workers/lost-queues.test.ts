import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runAudit } from '../../../cli/audit/run-audit.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { saveRequestCounts } from '../../../clickhouse/queries/audit/save-request-counts.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import type { WatermarksPage } from '../../../schemas/http/watermarks.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { readInstallation } from '../../../shared/directory/installation-record.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { clusterSettings, connectDatabase } from '../../support/cluster/connect.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { startRedisPair } from '../../support/redis-pair.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { startWorker, type TestWorker } from '../../support/services/worker.ts'
import { until } from '../../support/until.ts'

const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const services = sharedServices()
const SURFACE = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
/** Hours that have passed: the first one that is counted, and the one in which requests arrive. */
const firstHour = Math.floor(Date.now() / HOUR_MS - 6) * HOUR_MS
const hour = firstHour + 2 * HOUR_MS
const logged: { readonly level: number; readonly msg: string }[] = []
const logger = pino({ level: 'info' }, { write: line => void logged.push(JSON.parse(line)) })

let dir: string
let port: number
let server: LocalService
let directoryServer: LocalService
let directory: Redis
let redis: Redis
let database: TestDatabase
let clickhouse: ClickHouseClient
let edge: TestEdge
let api: TestApi
let key: string
let token: string
let env: Record<string, string>
let arrivedAt = firstHour

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-lost-'))
  port = await freePort()
  server = await startQueues()
  const own = { dir: join(dir, 'directory'), port: await freePort(), password: 'test', log: () => {} }
  directoryServer = await startRedis(own)
  directory = new Redis(directoryServer.url)
  redis = new Redis(server.url, { retryStrategy: () => 100 })
  redis.on('error', () => {})
  database = await createTestDatabase(services.clickhouseUrl, `lost_queues_${process.pid}`)
  clickhouse = connectDatabase(services.clickhouseUrl, database.name)
  env = {
    REDIS_URL: server.url,
    DIRECTORY_REDIS_URL: directoryServer.url,
    CLICKHOUSE_URL: services.clickhouseUrl,
    ...clusterSettings(services.clickhouseUrl),
    CLICKHOUSE_DATABASE: database.name,
    ...s3Settings(services.s3),
  }
  await putWorkspace(directoryServer.url, { id: SURFACE.workspaceId, slug: 'acme' })
  const store = createDirectory(directory)
  const createdAt = new Date().toISOString()
  await store.putSurface({ version: 1, id: SURFACE.surfaceId, workspaceId: 'ws_1', name: 'shop', createdAt })
  key = await issueKey(store, SURFACE)
  token = await signToken({ org: 'acme' })
  const settings = { DIRECTORY_REDIS_URL: directoryServer.url }
  edge = await startEdge(server.url, settings, logger, () => arrivedAt)
  api = await startApi({ ...services, redisUrl: server.url }, database.name, settings)
}, 60_000)

afterAll(async () => {
  await edge?.stop()
  await api?.stop()
  await clickhouse?.close()
  await database?.drop()
  for (const one of [redis, directory]) one?.disconnect()
  await Promise.all([server?.kill9(), directoryServer?.kill9()])
  await rm(dir, { recursive: true, force: true })
})

function startQueues(): Promise<LocalService> {
  return startRedis({ dir: join(dir, 'queues'), port, password: 'test', log: () => {} })
}

/** Sends an export with a span. Returns the id of its receipt. */
async function send(): Promise<string> {
  const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
  const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' }
  const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [{ ...ids, name: 'sent' }] }] }] })
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  expect(response.status).toBe(200)
  return response.headers.get('x-receipt-id') ?? ''
}

const workers = () => startWorker(['traces', 'exceptions'], { ...env, REDIS_DURABILITY: 'unchecked' })
const statusOf = async (id: string) => {
  const { body } = await call(api.baseUrl, `GET /v3/receipts/${id}`, { bearer: token })
  return (body as { receipt: { status: string } }).receipt.status
}
const untilStored = (id: string) => until('it is stored', async () => (await statusOf(id)) === 'stored')
const watermark = async () => {
  const { body } = await call(api.baseUrl, 'GET /v3/watermarks', { bearer: token })
  return Date.parse((body as WatermarksPage).watermarks[0]?.settledBefore.traces ?? '')
}
const gauge = async (process: Pick<TestEdge | TestWorker, 'metrics'>) =>
  /^penstock_queue_store_epoch_changed\{[^}]*\} (\d)$/m.exec(await process.metrics())?.[1]
/** Has the edge connect again, and check its stores then. */
const endConnections = () => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
const lossesLogged = () => logged.filter(({ msg }) => msg.startsWith('the redis of the queues has lost its data'))
const seenAtMs = async () => JSON.parse((await directory.get(upkeepKeys.queuesSeen)) ?? '{"seenAtMs":0}').seenAtMs

async function untilChecked(sinceMs: number): Promise<void> {
  await until('the queues are checked', async () => (await seenAtMs()) > sinceMs)
}

async function cli(...words: string[]): Promise<{ code: number; stdout: string }> {
  return new Promise(resolve => {
    const options = { env: { ...env, PATH: process.env.PATH } }
    execFile(process.execPath, [MAIN, ...words], options, (error, stdout) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout }),
    )
  })
}

it('a restart with its log is none', async () => {
  const waiting = await send()
  const restartedAt = Date.now()
  await server.kill9()
  server = await startQueues()
  await until('the edge is ready', () => edge.isReady() === true)
  await untilChecked(restartedAt)
  expect({ gauge: await gauge(edge), losses: (await readInstallation(directory))?.losses }).toEqual({
    gauge: '0',
    losses: [],
  })
  const worker = workers()
  await untilStored(waiting)
  await worker.stop()
}, 60_000)

it('it is known at once: by log, metric, watermarks, receipts and audit, until it is accepted', async () => {
  arrivedAt = hour
  const worker = workers()
  const stored = await send()
  await untilStored(stored)
  await worker.stop()
  const storedAt = Date.now()
  await endConnections()
  await until('the edge is ready', () => edge.isReady() === true)
  await untilChecked(storedAt)
  const before = Date.now()
  const lost = await Promise.all(Array.from({ length: 20 }, send))
  expect(await statusOf(lost[0] as string)).toBe('queued')
  // As the workers do each minute.
  await saveRequestCounts(onOneServer(redis), clickhouse, Date.now())

  await server.kill9()
  await rm(join(dir, 'queues'), { recursive: true })
  server = await startQueues()
  await until('the loss is logged', () => lossesLogged().length > 0)
  expect(lossesLogged()).toMatchObject([{ level: 50 }])
  await until('the edge is ready', () => edge.isReady() === true)
  expect(await gauge(edge)).toBe('1')
  expect(await watermark()).toBeLessThanOrEqual(before)
  expect([await statusOf(stored), await statusOf(lost[0] as string)]).toEqual(['stored', 'lost_or_unknown'])

  arrivedAt = hour + HOUR_MS
  const after = await send()
  const next = workers()
  await untilStored(after)
  await until('the worker shows it, too', async () => (await gauge(next)) === '1')
  expect(await watermark()).toBeLessThanOrEqual(before)

  const range = ['--from', new Date(hour).toISOString(), '--to', new Date(Date.now() + HOUR_MS).toISOString()]
  const audit = await cli('audit', ...range)
  expect(audit).toMatchObject({ code: 11, stdout: expect.stringContaining('20 traces lost (21 accepted, 1 settled)') })
  expect(audit.stdout).toMatch(
    /^the Redis of the queues lost its data between \S+Z and \S+Z: requests that arrived from/m,
  )

  await acceptLoss()
  await endConnections()
  await until('the edge has checked', async () => (await gauge(edge)) === '0')
  await until('the watermark moves on', async () => (await watermark()) > before)
  expect(await statusOf(lost[0] as string)).toBe('lost_or_unknown')
  expect(lossesLogged()).toHaveLength(1)
  await next.stop()
}, 120_000)

async function acceptLoss(): Promise<void> {
  const accepted = await cli('queues', 'accept-loss')
  expect(accepted).toMatchObject({ code: 0 })
  expect(accepted.stdout).toMatch(/^accepted: the data of the queues was lost between \S+Z and \S+Z$/m)
  expect((await cli('queues', 'accept-loss')).stdout).toBe('there is no loss to accept\n')
}

it('the audit judges the hours of a loss, though they are the first that were counted', async () => {
  const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  const settled = { traces: hour, logs: hour }
  const loss = { settledBeforeMs: settled, seenAtMs: hour, foundAtMs: hour + 60_000, acceptedAtMs: null }
  const deps = { queues: onOneServer(redis), clickhouse, objects, now: Date.now }
  const range = { from: hour / 1_000, to: (hour + HOUR_MS) / 1_000, workspaceId: '' }
  try {
    await clickhouse.command({
      query: `ALTER TABLE request_counts DELETE WHERE received_hour < ${hour / 1_000} SETTINGS mutations_sync = 2`,
    })
    expect((await runAudit({ ...deps, losses: [] }, range)).differences).toEqual([])
    const { differences, losses } = await runAudit({ ...deps, losses: [loss] }, range)
    const found = new Date(loss.foundAtMs).toISOString()
    expect(differences.map(({ text }) => text)).toEqual([
      `at least 20 traces lost (21 accepted, 1 settled), with the data of the queues before ${found}`,
    ])
    expect(losses).toMatchObject([{ found, seen: new Date(hour).toISOString() }])
  } finally {
    objects.close()
  }
})

it('a promoted replica is none', async () => {
  const pair = await startRedisPair()
  const other = new Redis(`${services.redisUrl}/15`)
  await other.flushdb()
  const url = `${services.redisUrl}/15`
  const replicated = await startEdge(pair.url, { DIRECTORY_REDIS_URL: url, REDIS_DURABILITY: 'replicated' })
  try {
    const { mark } = queueKeys('traces')
    const marked = await until('the replica has the mark', () => pair.replica.get(mark))
    await pair.promote()
    await until('the edge is ready on the new primary', async () => {
      const clients = String(await pair.replica.client('LIST'))
      return replicated.isReady() === true && clients.split('\n').length > 3
    })
    await until('it is checked', async () => JSON.parse((await other.get(upkeepKeys.queuesSeen)) ?? '{}').seenAtMs > 0)
    expect(await pair.replica.get(mark)).toBe(marked)
    expect((await readInstallation(other))?.losses).toEqual([])
    expect(await gauge(replicated)).toBe('0')
  } finally {
    await replicated.stop()
    other.disconnect()
    await pair.stop()
  }
}, 60_000)
