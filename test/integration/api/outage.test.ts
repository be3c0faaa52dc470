import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { exportJWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { workspaceKeyCreatedSchema, workspaceKeysPageSchema } from '../../../schemas/http/workspaces/schemas.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { countAwakeMs } from '../../support/count-awake-ms.ts'
import {
  AUDIENCE,
  call,
  createDatabase,
  FAR_EXPIRY,
  ISSUER,
  insertExceptions,
  insertSpans,
  putWorkspace,
  signToken,
  startApi,
} from '../../support/services/api.ts'
import { type Services, startServices } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

const FINDING = `fnd_${'a'.repeat(26)}`
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const QUERY_TIMEOUT_MS = 1_500

describe('while a server is unavailable', () => {
  let services: Services
  const stops: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    services = await startServices()
    stops.push(() => services.stop())
    const client = await createDatabase(services.clickhouseUrl, 'penstock')
    await insertSpans(client, [{ traceId: TRACE, spanId: '00000000000000aa' }])
    await insertExceptions(client, [{ findingId: FINDING, traceId: TRACE }])
    await client.close()
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
  })
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  const paths = [
    `/v3/findings/${FINDING}/traces/${TRACE}`,
    '/v3/findings',
    `/v3/findings/${FINDING}`,
    `/v3/findings/${FINDING}/traces`,
  ]

  it('ClickHouse killed: returns 503 with Retry-After at once, and 200 after the restart', async () => {
    const ask = await start()
    expect((await ask(paths[0])).status).toBe(200)
    await services.clickhouse.kill9()
    for (const path of paths) await expectUnavailable(ask, path, 1_000)
    await services.clickhouse.restart()
    await until('the trace is read again', async () => (await ask(paths[0])).status === 200)
  })

  it('ClickHouse silent: returns 503 after the deadline, and 200 when it continues', async () => {
    const ask = await start()
    expect((await ask(paths[0])).status).toBe(200)
    process.kill(services.clickhouse.pid, 'SIGSTOP')
    try {
      await Promise.all(paths.map(path => expectUnavailable(ask, path, QUERY_TIMEOUT_MS + 1_000)))
    } finally {
      process.kill(services.clickhouse.pid, 'SIGCONT')
    }
    await until('the trace is read again', async () => (await ask(paths[0])).status === 200)
  })

  it('Redis killed: returns 503, never 401 or 404', async () => {
    const ask = await start()
    await services.redis.kill9()
    await expectUnavailable(ask, paths[0] ?? '', 2_000)
    await services.redis.restart()
    await until('the trace is read again', async () => (await ask(paths[0])).status === 200)
  })

  it('directory emptied: returns 503, never 401 or 404, and 200 after it is restored', async () => {
    const ask = await start()
    const redis = new Redis(services.redisUrl)
    await redis.flushall()
    await expectUnavailable(ask, paths[0] ?? '', 1_000)
    const api = await startApi(services, 'penstock')
    stops.push(() => api.stop())
    const key = await call(api.baseUrl, 'GET /v3/surfaces', { bearer: generateKey('workspace') })
    expect(key.status).toBe(503)
    redis.disconnect()
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await until('the trace is read again', async () => (await ask(paths[0])).status === 200)
  })

  it('Redis killed: neither reads nor changes surfaces and workspace keys, and a repeated request creates one key', async () => {
    const api = await startApi(services, 'penstock')
    stops.push(() => api.stop())
    const token = await signToken()
    const apiKeys = '/v3/workspaces/acme/api-keys'
    const request = {
      idempotencyKey: randomUUID(),
      name: 'deploys',
      scopes: ['org:surfaces:read'],
      secondsUntilExpiration: null,
    }
    const create = () => call(api.baseUrl, `POST ${apiKeys}`, { bearer: token, body: request })
    const before = workspaceKeyCreatedSchema.parse((await create()).body)
    const calls: [operation: string, bearer: string, body?: unknown][] = [
      ['GET /v3/surfaces', token],
      ['GET /v3/surfaces', before.apiKey.secret],
      ['POST /v3/surfaces', token, { name: 'Shop' }],
      ['DELETE /v3/surfaces/srf_1', token],
      ['POST /v3/surfaces/srf_1/keys', token, { kind: 'public' }],
      [`POST ${apiKeys}`, token, request],
      [`DELETE ${apiKeys}/${before.apiKey.id}`, token],
    ]
    await services.redis.kill9()
    const asked = calls.map(async ([operation, bearer, body]) => {
      const awakeMs = countAwakeMs()
      const answer = await call(api.baseUrl, operation, { bearer, body })
      expect({ operation, ...answer }).toMatchObject({
        operation,
        status: 503,
        body: { code: 'INGEST_INFRA_UNAVAILABLE', service: 'frontier-runtime' },
      })
      expect(answer.headers.get('retry-after')).toBe('5')
      expect(awakeMs()).toBeLessThan(2_000)
    })
    await Promise.all(asked)
    await services.redis.restart()
    await until('the key is returned again', async () => (await create()).status === 201)
    expect((await create()).body).toEqual(before)
    const { body } = await call(api.baseUrl, `GET ${apiKeys}`, { bearer: token })
    expect(workspaceKeysPageSchema.parse(body).apiKeys).toHaveLength(1)
  })

  it('JWKS endpoint unreachable: returns 503, and accepts its keys for sessions and workloads once it is reachable', async () => {
    const session = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const workload = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    let isBroken = true
    const jwks = createServer(async (request, response) => {
      if (isBroken) return void response.writeHead(500).end()
      const { publicKey } = request.url === '/workload' ? workload : session
      response.end(JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1' }] }))
    })
    await new Promise<void>(resolve => jwks.listen(0, '127.0.0.1', resolve))
    stops.push(() => new Promise(resolve => jwks.close(resolve)))
    const jwksUrl = `http://127.0.0.1:${(jwks.address() as AddressInfo).port}`
    const ask = await start({
      AUTH_PUBLIC_KEY: undefined,
      AUTH_JWKS_URL: `${jwksUrl}/session`,
      WORKLOAD_ISSUER: 'https://workloads.test',
      WORKLOAD_JWKS_URL: `${jwksUrl}/workload`,
      WORKLOAD_AUDIENCE: 'penstock-workloads',
    })
    const claims = { sub: 'user_1', org: 'acme', exp: FAR_EXPIRY }
    const sign = (key: typeof session, alg: string, claimed: object) =>
      new SignJWT({ ...claims, ...claimed }).setProtectedHeader({ alg, kid: 'k1' }).sign(key.privateKey)
    const userToken = await sign(session, 'RS256', { iss: ISSUER, aud: AUDIENCE })
    const workloadClaims = { iss: 'https://workloads.test', aud: 'penstock-workloads', sub: 'job-7' }
    const workloadToken = await sign(workload, 'ES256', workloadClaims)

    for (const token of [userToken, workloadToken]) await expectUnavailable(ask, paths[0] ?? '', 3_000, token)
    isBroken = false
    for (const token of [userToken, workloadToken]) expect((await ask(paths[0], token)).status).toBe(200)
    const impostor = await sign(session, 'RS256', workloadClaims)
    expect(await ask(paths[0], impostor)).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
  })

  type Ask = (path?: string, token?: string) => Promise<{ status: number; retryAfter: string | null; body: unknown }>

  async function start(settings: Record<string, string | undefined> = {}): Promise<Ask> {
    const api = await startApi(services, 'penstock', { API_QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS), ...settings })
    stops.push(() => api.stop())
    const ownToken = await signToken()
    return async (path = '', token = ownToken) => {
      const response = await fetch(api.baseUrl + path, { headers: { authorization: `Bearer ${token}` } })
      const body: unknown = await response.json()
      return { status: response.status, retryAfter: response.headers.get('retry-after'), body }
    }
  }

  async function expectUnavailable(ask: Ask, path: string, withinMs: number, token?: string): Promise<void> {
    const awakeMs = countAwakeMs()
    expect(await ask(path, token)).toEqual({
      status: 503,
      retryAfter: '5',
      body: { code: 'FINDING_CONTEXT_QUERY_FAILED', message: expect.any(String), service: 'api-findings' },
    })
    expect(awakeMs()).toBeLessThan(withinMs)
  }
})
