import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { QUEUES, type QueueName } from '../../../schemas/queues/names.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { watchWatermarks } from '../../../shared/queue/watch/watch-watermarks.ts'
import { readWatermarks, redisTimeMs, settledBeforeMs } from '../../../shared/queue/watermark.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { call, putWorkspace, signToken, startApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/5`
const A = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
const B = { workspaceId: 'ws_1', surfaceId: 'srf_2' }
let redis: Redis
let database: TestDatabase
let edge: TestEdge
let keyOfA: string
let keyOfB: string
const pools: TestPools[] = []

beforeAll(async () => {
  redis = new Redis(redisUrl)
  database = await createTestDatabase(services.clickhouseUrl, `watermark_${process.pid}`)
})

beforeEach(async () => {
  await redis.flushdb()
  const directory = createDirectory(redis)
  keyOfA = await issueKey(directory, A)
  keyOfB = await issueKey(directory, B)
  // The edge shares the event loop of the workers of this test.
  edge = await startEdge(redisUrl, { COMMIT_TIMEOUT_MS: '5000' })
})

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.stop()
  await edge.stop()
})

afterAll(async () => {
  await database?.drop()
  redis?.disconnect()
})

function start(...queues: QueueName[]): TestPools {
  const started = startPools(queues, { ...services, redisUrl }, database.name)
  pools.push(started)
  return started
}

/** Sends a span with this name, or a body that cannot be decoded. */
async function post(key: string, name: string | undefined): Promise<void> {
  const span = {
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: 'eee19b7ec3c1b174',
    name,
    startTimeUnixNano: '1790000000000000000',
    endTimeUnixNano: '1790000000000000001',
  }
  const body =
    name === undefined ? '{"broken' : JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] })
  const headers = { 'content-type': 'application/json', 'x-service-public-key': key }
  const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, { method: 'POST', headers, body })
  expect(response.status).toBe(200)
}

async function watermark(surface = A) {
  const { readAtMs, surfaces } = await readWatermarks(onOneServer(redis), [surface])
  return { readAtMs, tracesMs: surfaces[0]?.settledBeforeMs.traces ?? Number.NaN }
}

it('stays before a request while workers are stopped, for its surface and kind only, and passes it when it is stored', async () => {
  await post(keyOfA, 'first')
  const acknowledgedAt = await redisTimeMs(redis)
  await post(keyOfA, 'second')
  const held = await readWatermarks(onOneServer(redis), [A, B])
  expect(held.surfaces[0]?.settledBeforeMs.traces).toBeLessThanOrEqual(acknowledgedAt)
  expect(held.surfaces[0]?.settledBeforeMs.logs).toBe(held.readAtMs)
  expect(held.surfaces[1]?.settledBeforeMs.traces).toBe(held.readAtMs)
  expect(await settledBeforeMs(onOneServer(redis), A.workspaceId)).toBe(held.surfaces[0]?.settledBeforeMs.traces)

  start('traces')
  await until('the watermark is current', async () => {
    const { readAtMs, tracesMs } = await watermark()
    return tracesMs === readAtMs
  })
  expect(await database.rows("SELECT name FROM spans WHERE name IN ('first', 'second')")).toHaveLength(2)
})

it('keeps nothing of a surface that has no unfinished request', async () => {
  const { busy } = queueKeys('traces')
  await post(keyOfA, 'first')
  expect(await redis.hkeys(busy)).toEqual(['ws_1/srf_1'])
  start('traces')
  await until('the request is finished', async () => (await redis.zcard(queueKeys('traces').pending)) === 0)
  expect(await redis.hlen(busy)).toBe(0)
  await pools.splice(0)[0]?.stop()
  await post(keyOfB, 'of another surface')
  await post(keyOfA, undefined)
  expect((await redis.hkeys(busy)).sort()).toEqual(['ws_1/srf_1', 'ws_1/srf_2'])
  start('traces', 'dead-letters')
  await until('both are finished', async () => (await redis.zcard(queueKeys('traces').pending)) === 0)
  expect(await redis.hlen(busy)).toBe(0)
})

it('ignores what other surfaces had before a surface last had nothing unfinished', async () => {
  await post(keyOfB, 'of another surface')
  await until('the clock of Redis is later', async () => (await redisTimeMs(redis)) > (await watermark(B)).tracesMs)
  await post(keyOfA, 'own')
  expect((await watermark(A)).tracesMs).toBeGreaterThan((await watermark(B)).tracesMs)
})

it('stays before a refused request until its dead letter is stored and indexed, whatever queue it is in', async () => {
  await post(keyOfA, undefined)
  const acknowledgedAt = await redisTimeMs(redis)
  const stages: QueueName[] = ['traces', 'dead-letters', 'dead-letter-index']
  for (const [i, queue] of stages.entries()) {
    expect((await watermark()).tracesMs, `before ${queue}`).toBeLessThanOrEqual(acknowledgedAt)
    start(queue)
    const next = stages[i + 1]
    if (next) await until(`the letter is in ${next}`, async () => (await redis.zcard(queueKeys(next).pending)) === 1)
  }
  await until('the watermark is current', async () => (await watermark()).tracesMs > acknowledgedAt)
  expect(await database.rows(`SELECT 1 FROM dead_letters WHERE surface_id = '${A.surfaceId}'`)).toHaveLength(1)
})

it('is never later than a request that is not stored, while workers come and go', async () => {
  const acknowledged: { name: string; atMs: number }[] = []
  let isSending = true
  const send = async (client: number) => {
    for (let i = 0; i < 120; i++) {
      const name = `load ${client} ${i}`
      await post(keyOfA, name)
      acknowledged.push({ name, atMs: await redisTimeMs(redis) })
    }
  }
  const restart = async () => {
    while (isSending) {
      const worker = start('traces', 'dead-letters', 'dead-letter-index')
      await delay(300)
      await worker.stop()
      pools.splice(pools.indexOf(worker), 1)
    }
    start('traces', 'dead-letters', 'dead-letter-index')
  }
  let checked = 0
  const check = async () => {
    const { tracesMs } = await watermark()
    const expected = acknowledged.filter(({ atMs }) => atMs < tracesMs).map(({ name }) => name)
    const rows = await database.rows<{ name: string }>("SELECT name FROM spans WHERE name LIKE 'load %'")
    const stored = new Set(rows.map(({ name }) => name))
    expect(expected.filter(name => !stored.has(name))).toEqual([])
    checked += expected.length
    return { rows: rows.length, expected: expected.length }
  }
  const restarting = restart()
  const sending = Promise.all(Array.from({ length: 8 }, (_, client) => send(client))).finally(() => {
    isSending = false
  })
  while (isSending) await check()
  await sending
  await restarting
  await until('everything is settled', async () => (await check()).expected === 960, { deadlineMs: 30_000 })
  expect((await check()).rows).toBe(960)
  expect(checked).toBeGreaterThan(960)
})

it('is listed for the surfaces of the workspace, with the age of the oldest request in each queue', async () => {
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  await putWorkspace(redisUrl, { id: 'ws_2', slug: 'other' })
  const directory = createDirectory(redis)
  const createdAt = new Date().toISOString()
  await directory.putSurface({ version: 1, id: 'srf_1', workspaceId: 'ws_1', name: 'Shop', createdAt })
  await directory.putSurface({ version: 1, id: 'srf_9', workspaceId: 'ws_2', name: 'Other', createdAt })
  await post(keyOfA, 'listed')
  const acknowledgedAt = await redisTimeMs(redis)
  const api = await startApi({ ...services, redisUrl }, database.name)
  const own = await call(api.baseUrl, 'GET /v3/watermarks', { bearer: await signToken() })
  const other = await call(api.baseUrl, 'GET /v3/watermarks', { bearer: await signToken({ org: 'other' }) })
  await api.stop()
  expect(own).toMatchObject({ status: 200, body: { watermarks: [{ surfaceId: 'srf_1' }], nextCursor: null } })
  const [mine] = (own.body as { watermarks: { settledBefore: Record<string, string>; oldestAgeSeconds: object }[] })
    .watermarks
  expect(Date.parse(mine?.settledBefore.traces ?? '')).toBeLessThanOrEqual(acknowledgedAt)
  expect(Object.keys(mine?.oldestAgeSeconds ?? {}).sort()).toEqual([...QUEUES].sort())
  expect(mine?.oldestAgeSeconds).toMatchObject({ traces: expect.any(Number), 'replay-chunks': 0, receipts: 0 })
  const readAt = (other.body as { readAt: string }).readAt
  expect(other.body).toMatchObject({ watermarks: [{ surfaceId: 'srf_9', settledBefore: { traces: readAt } }] })
})

it('is a metric for all surfaces together and for those with unfinished requests', async () => {
  await post(keyOfA, 'measured')
  const metrics = createMetrics('test')
  watchWatermarks(metrics, onOneServer(redis))
  await until('the lag is shown', async () => {
    const lines = (await metrics.registry.metrics()).split('\n').filter(line => line.includes('signal="traces"'))
    const lagOf = (surface: string) =>
      lines
        .find(line => line.includes(`surface="${surface}"`))
        ?.split(' ')
        .at(-1)
    return Number(lagOf('')) > 0.01 && Number(lagOf('srf_1')) > 0.01 && lagOf('srf_2') === undefined
  })
  expect(await metrics.registry.metrics()).toMatch(/signal="logs",surface="".* 0$/m)
})
