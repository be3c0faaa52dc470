import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { saveRequestCounts } from '../../../clickhouse/queries/audit/save-request-counts.ts'
import { type Pipeline, pipelineSchema } from '../../../schemas/http/pipeline.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { countAwakeMs } from '../../support/count-awake-ms.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { call, createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { type Services, s3Settings, startServices } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

const DATABASE = 'penstock'
const POOLS = ['logs', 'traces', 'exceptions', 'span-stats', 'dead-letters', 'dead-letter-index'] as const
const QUERY_TIMEOUT_MS = 3_000
const LOGS = JSON.stringify({
  resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'a' } }, { body: { stringValue: 'b' } }] }] }],
})
const SPANS = JSON.stringify({
  resourceSpans: [{ scopeSpans: [{ spans: [{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), name: 'a' }] }] }],
})
const BROKEN = JSON.stringify({ resourceSpans: 'not a list' })

describe('the pipeline of a workspace', () => {
  let services: Services
  let redis: Redis
  let clickhouse: ClickHouseClient
  let api: TestApi
  let edge: TestEdge
  let pools: TestPools | undefined
  const keys = new Map<string, string>()

  beforeAll(async () => {
    services = await startServices()
    const { redisUrl, clickhouseUrl, s3 } = services
    redis = new Redis(redisUrl)
    clickhouse = await createDatabase(clickhouseUrl, DATABASE)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex' })
    const directory = createDirectory(redis)
    for (const [workspaceId, surfaceId] of [
      ['ws_1', 'srf_1'],
      ['ws_1', 'srf_2'],
      ['ws_2', 'srf_9'],
    ] as const) {
      const createdAt = new Date().toISOString()
      await directory.putSurface({ version: 1, id: surfaceId, workspaceId, name: surfaceId, createdAt })
      keys.set(surfaceId, await issueKey(directory, { workspaceId, surfaceId }))
    }
    edge = await startEdge(redisUrl, s3Settings(s3))
    const settings = { ...s3Settings(s3), API_QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS) }
    api = await startApi(services, DATABASE, settings)
  }, 120_000)
  afterAll(async () => {
    await pools?.stop()
    await api?.stop()
    await edge?.stop()
    await clickhouse?.close()
    redis?.disconnect()
    await services?.stop()
  })

  it('shows what waits while no worker runs, and how its age grows', async () => {
    for (const surfaceId of ['srf_1', 'srf_1', 'srf_2']) expect(await send(surfaceId, 'logs', LOGS)).toBe(200)
    expect(await send('srf_1', 'traces', SPANS)).toBe(200)
    const first = await read()
    expect(first).toMatchObject({ isPartial: false, unavailable: null, history: { rates: [] } })
    expect(first.queues.map(({ queue }) => queue)).toEqual(QUEUES)
    expect(queueOf(first, 'logs')).toMatchObject({ kind: 'logs', requests: 3 })
    expect(queueOf(first, 'traces')).toMatchObject({ kind: 'traces', requests: 1 })
    for (const queue of ['logs', 'traces'] as const) {
      const { workBytes, oldestAgeSeconds, settledBefore = '' } = queueOf(first, queue)
      expect(workBytes).toBeGreaterThan(0)
      expect(oldestAgeSeconds).toBeGreaterThan(0)
      expect(settledBefore < first.readAt).toBe(true)
    }
    expect(queueOf(first, 'metrics')).toEqual({
      ...{
        queue: 'metrics',
        kind: 'metrics',
        workBytes: 0,
        oldestAgeSeconds: 0,
        requests: 0,
        settledBefore: first.readAt,
      },
    })
    expect(queueOf(first, 'receipts')).toEqual({ queue: 'receipts', workBytes: 0, oldestAgeSeconds: 0 })
    await until('the age has grown', async () => {
      const later = queueOf(await read(), 'logs')
      return later.oldestAgeSeconds > queueOf(first, 'logs').oldestAgeSeconds && later.requests === 3
    })
  })

  it('shows another workspace nothing of it', async () => {
    const { readAt, queues, history } = await read('globex')
    for (const { workBytes, oldestAgeSeconds, requests = 0, settledBefore = readAt } of queues) {
      expect({ workBytes, oldestAgeSeconds, requests, settledBefore }).toEqual({
        ...{ workBytes: 0, oldestAgeSeconds: 0, requests: 0, settledBefore: readAt },
      })
    }
    expect(history).toMatchObject({ rates: [], refused: [], letters: [], purgedLetters: 0 })
  })

  it('shows nothing waiting once it is stored, and its rates', async () => {
    pools = startPools(POOLS, services, DATABASE)
    await until('nothing waits', async () => (await read()).queues.every(({ workBytes }) => workBytes === 0))
    const { history, queues, readAt } = await read()
    for (const { requests = 0, settledBefore = readAt } of queues) {
      expect({ requests, settledBefore }).toEqual({ requests: 0, settledBefore: readAt })
    }
    expect(history?.rates.map(({ kind }) => kind)).toEqual(['logs', 'traces'])
    const steps =
      (Date.parse(history?.to ?? '') - Date.parse(history?.from ?? '')) / 1_000 / (history?.stepSeconds ?? 1)
    expect(steps).toBeLessThanOrEqual(101)
    const [logs] = history?.rates ?? []
    for (const counts of [logs?.requests, logs?.records, logs?.bytes, logs?.deadLettered])
      expect(counts).toHaveLength(steps)
    expect({ requests: sum(logs?.requests), records: sum(logs?.records), bytes: sum(logs?.bytes) }).toEqual({
      ...{ requests: 3, records: 6, bytes: 3 * LOGS.length },
    })
  })

  it('counts what waits besides what is processed already', async () => {
    await pools?.stop()
    for (const _ of [1, 2]) expect(await send('srf_2', 'logs', LOGS)).toBe(200)
    expect(queueOf(await read(), 'logs')).toMatchObject({ requests: 2 })
    // Counts that were copied from Redis are not added to those that are still there.
    await saveRequestCounts(onOneServer(redis), clickhouse, Date.now())
    expect(queueOf(await read(), 'logs')).toMatchObject({ requests: 2 })
    // They are removed there after some hours.
    await saveRequestCounts(onOneServer(redis), clickhouse, Date.now() + DAY_MS)
    expect(queueOf(await read(), 'logs')).toMatchObject({ requests: 2 })
    pools = startPools(POOLS, services, DATABASE)
    await until('nothing waits', async () => (await read()).queues.every(({ workBytes }) => workBytes === 0))
  })

  it('counts dead letters by reason and state, and those that are purged', async () => {
    for (const _ of [1, 2, 3]) expect(await send('srf_1', 'traces', BROKEN)).toBe(200)
    const lettersOf = async (org?: string) => (await read(org)).history?.letters ?? []
    await until('the letters are indexed', async () => (await lettersOf()).some(({ dead }) => dead === 3))
    const [{ reason } = { reason: '' }] = await lettersOf()
    expect(await lettersOf()).toEqual([{ reason, dead: 3, replayed: 0, discarded: 0 }])
    const { history } = await read()
    expect(sum(history?.rates.find(({ kind }) => kind === 'traces')?.deadLettered)).toBe(3)

    await clickhouse.command({
      query: `INSERT INTO dead_letters (* EXCEPT (attempt, outcome, reason, indexed_at), attempt, outcome, reason)
        SELECT * EXCEPT (attempt, outcome, reason, indexed_at), 1, 'stored', '' FROM dead_letters ORDER BY job_id LIMIT 1`,
    })
    await clickhouse.command({
      query: `INSERT INTO ingest_log (workspace_id, surface_id, received_at, signal, payloads, discarded)
        SELECT 'ws_1', 'srf_1', now64(3), 'traces', 0, map('${reason}', 4, 'over_bound', 1)`,
    })
    expect(await lettersOf()).toEqual([
      { reason, dead: 2, replayed: 1, discarded: 4 },
      { reason: 'over_bound', dead: 0, replayed: 0, discarded: 1 },
    ])
    expect(await lettersOf('globex')).toEqual([])

    const purge = { bearer: await signToken(), body: { filter: { state: 'dead', queue: 'traces' } } }
    expect((await call(api.baseUrl, 'POST /v3/dead-letters/purge', purge)).body).toMatchObject({ purged: 2 })
    const after = await read()
    expect(after.history).toMatchObject({ purgedLetters: 2, letters: [{ reason, dead: 0, replayed: 1 }, {}] })
    expect((await read('globex')).history?.purgedLetters).toBe(0)
  })

  it('counts refusals by kind and status', async () => {
    expect(await send('srf_1', 'logs', LOGS, { 'content-encoding': 'br' })).toBe(415)
    expect(await send('srf_2', 'logs', LOGS, { 'content-encoding': 'br' })).toBe(415)
    expect(await send('srf_1', 'traces', LOGS, { 'content-type': 'application/xml' })).toBe(415)
    await until('the refusals are saved', async () => {
      await saveRequestCounts(onOneServer(redis), clickhouse, Date.now())
      return sum((await read()).history?.refused.map(({ requests }) => requests)) === 3
    })
    expect((await read()).history?.refused).toEqual([
      { kind: 'logs', status: 415, requests: 2 },
      { kind: 'traces', status: 415, requests: 1 },
    ])
    expect((await read('globex')).history?.refused).toEqual([])
  })

  it('shows the history of a time', async () => {
    const [from, to] = ['2026-01-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z']
    const past = await read('acme', `?from=${from}&to=${to}`)
    expect(past.history).toMatchObject({ from, to, stepSeconds: 43_200, rates: [], refused: [], letters: [] })
  })

  it.each([
    ['?from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z', 'from'],
    ['?from=2026-01-01T00:00:00Z&to=2026-02-02T00:00:00Z', 'from'],
    ['?from=yesterday', 'from'],
    ['?to=2026-13-01T00:00:00Z', 'to'],
  ])('refuses %s', async (query, word) => {
    const { status, body } = await call(api.baseUrl, `GET /v3/pipeline${query}`, { bearer: await signToken() })
    expect({ status, message: (body as { message: string }).message }).toEqual({
      ...{ status: 400, message: expect.stringContaining(word) },
    })
  })

  it('is partial for a workspace with more than 1,000 surfaces', async () => {
    await putWorkspace(services.redisUrl, { id: 'ws_3', slug: 'initech' })
    const directory = createDirectory(redis)
    const createdAt = new Date().toISOString()
    const ids = Array.from({ length: 1_001 }, (_, i) => `srf_${i}of3`)
    await Promise.all(ids.map(id => directory.putSurface({ version: 1, id, workspaceId: 'ws_3', name: id, createdAt })))
    const { isPartial, queues } = await read('initech')
    expect({ isPartial, requests: sum(queues.map(({ requests }) => requests ?? 0)) }).toEqual({
      isPartial: true,
      requests: 0,
    })
  })

  it('has its queues and no history while ClickHouse is silent or killed', async () => {
    await pools?.stop()
    pools = undefined
    expect(await send('srf_1', 'logs', LOGS)).toBe(200)
    const withoutStore = {
      history: null,
      unavailable: expect.stringContaining('stored data cannot be read'),
      queues: expect.arrayContaining([
        expect.objectContaining({ queue: 'logs', requests: null, workBytes: expect.any(Number) }),
        expect.objectContaining({ queue: 'traces', requests: 0 }),
      ]),
    }
    process.kill(services.clickhouse.pid, 'SIGSTOP')
    try {
      const awakeMs = countAwakeMs()
      expect(await read()).toMatchObject(withoutStore)
      expect(awakeMs()).toBeLessThan(QUERY_TIMEOUT_MS)
    } finally {
      process.kill(services.clickhouse.pid, 'SIGCONT')
    }
    await until('the history is read again', async () => (await read()).history !== null)
    await services.clickhouse.kill9()
    const answer = await read()
    expect(answer).toMatchObject(withoutStore)
    expect(queueOf(answer, 'logs').oldestAgeSeconds).toBeGreaterThan(0)
  })

  it('is unavailable without the queues', async () => {
    redis.disconnect()
    await services.redis.kill9()
    expect(await call(api.baseUrl, 'GET /v3/pipeline', { bearer: await signToken() })).toMatchObject({ status: 503 })
  })

  async function send(surfaceId: string, signal: string, body: string, headers = {}): Promise<number> {
    const request = { body, headers: { 'x-service-public-key': keys.get(surfaceId) ?? '', ...headers } }
    return (await call(edge.baseUrl, `POST /drain/v1/${signal}`, request)).status
  }

  async function read(org = 'acme', query = ''): Promise<Pipeline> {
    const { status, body } = await call(api.baseUrl, `GET /v3/pipeline${query}`, { bearer: await signToken({ org }) })
    expect(status).toBe(200)
    return pipelineSchema.parse(body)
  }
})

function queueOf({ queues }: Pipeline, name: Pipeline['queues'][number]['queue']): Pipeline['queues'][number] {
  const found = queues.find(({ queue }) => queue === name)
  if (found === undefined) throw new Error(`there is no queue ${name}`)
  return found
}

function sum(counts: readonly number[] = []): number {
  return counts.reduce((total, count) => total + count, 0)
}
