import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { keyUsagePageSchema, usagePageSchema } from '../../../schemas/http/usage.ts'
import {
  surfaceCreatedSchema,
  surfaceKeyCreatedSchema,
  surfaceKeysPageSchema,
  workspaceKeyCreatedSchema,
  workspaceKeysPageSchema,
} from '../../../schemas/http/workspaces/schemas.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { call, createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const DATABASE = `usage_${process.pid}`
const services = sharedServices()
const redisUrl = `${services.redisUrl}/10`
const EXPORT = JSON.stringify({
  resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'a' } }, { body: { stringValue: 'b' } }] }] }],
})

describe('the usage of a workspace', () => {
  let redis: Redis
  let clickhouse: ClickHouseClient
  let api: TestApi
  let edge: TestEdge
  let pools: TestPools

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    clickhouse = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex' })
    edge = await startEdge(redisUrl, s3Settings(services.s3))
    api = await startApi({ ...services, redisUrl }, DATABASE)
    pools = startPools(['logs'], { ...services, redisUrl }, DATABASE)
  })
  afterAll(async () => {
    await pools?.stop()
    await api?.stop()
    await edge?.stop()
    await clickhouse?.command({ query: `DROP DATABASE ${DATABASE}` })
    await clickhouse?.close()
    redis?.disconnect()
  })

  it('counts requests, bytes and records by day, surface and kind, and requests by key', async () => {
    const directory = createDirectory(redis)
    const keys = new Map<string, string>()
    for (const surfaceId of ['srf_1', 'srf_2']) {
      keys.set(
        surfaceId,
        await issueKey(directory, { workspaceId: 'ws_1', surfaceId, id: `key_of${surfaceId.slice(-1)}` }),
      )
    }
    const other = await issueKey(directory, { workspaceId: 'ws_2', surfaceId: 'srf_9', id: 'key_other' })
    await send(keys.get('srf_1') ?? '', 3)
    await send(keys.get('srf_2') ?? '', 2)
    await send(other, 1)

    const today = new Date().toISOString().slice(0, 10)
    const rowOf = (surfaceId: string, requests: number) => ({
      ...{ day: today, surfaceId, kind: 'logs', requests },
      ...{ bytes: requests * EXPORT.length, records: 2 * requests, scrubbed: [], dropped: [] },
    })
    await until('the requests are stored', async () => {
      const { usage } = usagePageSchema.parse((await ask('/v3/usage')).body)
      return usage.reduce((sum, { requests }) => sum + requests, 0) === 5
    })
    const first = usagePageSchema.parse((await ask('/v3/usage?limit=1')).body)
    expect(first.usage).toEqual([rowOf('srf_1', 3)])
    const second = usagePageSchema.parse((await ask(`/v3/usage?limit=1&cursor=${first.nextCursor}`)).body)
    expect(second).toEqual({ usage: [rowOf('srf_2', 2)], nextCursor: null })
    expect(usagePageSchema.parse((await ask('/v3/usage?from=2026-01-01&to=2026-01-31')).body).usage).toEqual([])

    await until('the keys are counted', async () => {
      const { keys: counted } = keyUsagePageSchema.parse((await ask('/v3/usage/keys')).body)
      return counted.length === 2
    })
    const page = keyUsagePageSchema.parse((await ask('/v3/usage/keys?limit=1')).body)
    expect(page).toMatchObject({ day: today, keys: [{ id: 'key_of1', requests: 3, bytes: 3 * EXPORT.length }] })
    const rest = keyUsagePageSchema.parse((await ask(`/v3/usage/keys?limit=1&cursor=${page.nextCursor}`)).body)
    expect(rest).toMatchObject({ keys: [{ id: 'key_of2', requests: 2 }], nextCursor: null })
    expect(keyUsagePageSchema.parse((await ask('/v3/usage/keys?day=2026-01-01')).body).keys).toEqual([])
  })

  it('counts the scrubbed values and dropped records of replays, but not their requests again', async () => {
    const day = new Date(Date.now() - 3 * DAY_MS).toISOString().slice(0, 10)
    await clickhouse.command({
      query: `INSERT INTO ${DATABASE}.ingest_log
        (workspace_id, surface_id, received_at, replayed_at, signal, payloads, bytes, rows, scrubbed, dropped) VALUES
        ('ws_1', 'srf_1', '${day} 10:00:00', 0, 'traces', 2, 10, 3, {'people': 1, 'credentials': 2}, {'b': 1}),
        ('ws_1', 'srf_1', '${day} 11:00:00', 0, 'traces', 1, 10, 3, {}, {'b': 2, 'a': 1}),
        ('ws_1', 'srf_1', '${day} 10:00:00', '${day} 12:00:00', 'traces', 1, 10, 1, {'people': 4, '10': 1}, {'a': 5})`,
    })
    const { usage } = usagePageSchema.parse((await ask(`/v3/usage?from=${day}&to=${day}`)).body)
    const sums = { kind: 'traces', requests: 3, bytes: 20, records: 6 }
    const rules = Object.entries({ '10': 1, credentials: 2, people: 5 })
    const scrubbed = rules.map(([rule, values]) => ({ rule, values }))
    const dropped = Object.entries({ a: 6, b: 3 }).map(([rule, count]) => ({ rule, count }))
    expect(usage).toEqual([{ day, surfaceId: 'srf_1', ...sums, scrubbed, dropped }])
  })

  it('states the last use and the requests of today for public, secret and API keys', async () => {
    const bearer = await signToken()
    const ask = async (operation: string, body?: unknown, credential = bearer) =>
      (await call(api.baseUrl, operation, { bearer: credential, body })).body
    const { surface } = surfaceCreatedSchema.parse(await ask('POST /v3/surfaces', { name: 'Shop' }))
    const keysPath = `/v3/surfaces/${surface.id}/keys`
    const make = async (body: object) => surfaceKeyCreatedSchema.parse(await ask(`POST ${keysPath}`, body)).key
    const [used, secret, unused] = [
      await make({ kind: 'public' }),
      await make({ kind: 'secret', scopes: [] }),
      await make({ kind: 'public' }),
    ]
    const request = { idempotencyKey: randomUUID(), name: 'ci', scopes: ['org:surfaces:read'] }
    const apiKeys = '/v3/workspaces/acme/api-keys'
    const made = await ask(`POST ${apiKeys}`, { ...request, secondsUntilExpiration: null })
    const { apiKey } = workspaceKeyCreatedSchema.parse(made)
    const before = Date.now()
    await send(used.secret, 3)
    // The key is valid, and lacks the scope.
    const refused = await call(edge.baseUrl, 'POST /v3/releases', { bearer: secret.secret, body: { version: '1' } })
    expect(refused.status).toBe(403)
    await ask('GET /v3/surfaces', undefined, apiKey.secret)

    const uses = await until('every use is counted', async () => {
      const { keys } = surfaceKeysPageSchema.parse(await ask(`GET ${keysPath}`))
      const listed = [...keys, ...workspaceKeysPageSchema.parse(await ask(`GET ${apiKeys}`)).apiKeys]
      const found = new Map(listed.map(({ id, usage }) => [id, usage]))
      return [used, secret, apiKey].every(({ id }) => found.get(id)?.lastUsedAt) ? found : undefined
    })
    expect([used, secret, apiKey].map(({ id }) => uses.get(id)?.requestsToday)).toEqual([3, 1, 1])
    for (const { id } of [used, secret, apiKey]) {
      expect(Date.parse(uses.get(id)?.lastUsedAt ?? '')).toBeGreaterThanOrEqual(before)
    }
    expect(uses.get(unused.id)).toEqual({ lastUsedAt: null, requestsToday: 0 })

    // A key that was used yesterday and not since.
    await redis.rename(usageKey(0), usageKey(-1))
    const { keys } = surfaceKeysPageSchema.parse(await ask(`GET ${keysPath}`))
    const [yesterday] = keys.filter(({ id }) => id === used.id)
    expect(yesterday?.usage).toEqual({ lastUsedAt: uses.get(used.id)?.lastUsedAt, requestsToday: 0 })
  })

  it.each([
    ['/v3/usage?from=2026-01-02&to=2026-01-01', 'from'],
    ['/v3/usage?from=2026-01-01&to=2026-02-01', 'from'],
    ['/v3/usage?from=yesterday', 'from'],
    ['/v3/usage/keys?day=2026-13-01', 'day'],
    ['/v3/usage?cursor=eA', 'cursor'],
  ])('refuses %s', async (path, word) => {
    const { status, body } = await ask(path)
    expect({ status, message: (body as { message: string }).message }).toEqual({
      status: 400,
      message: expect.stringContaining(word),
    })
  })

  const usageKey = (days: number) => `penstock:{key-usage}:ws_1:${Math.floor(Date.now() / DAY_MS) + days}`

  async function send(key: string, times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      const { status } = await call(edge.baseUrl, 'POST /drain/v1/logs', {
        body: EXPORT,
        headers: { 'x-service-public-key': key },
      })
      expect(status).toBe(200)
    }
  }

  async function ask(path: string) {
    return call(api.baseUrl, `GET ${path}`, { bearer: await signToken() })
  }
})
