import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const redisUrl = `${sharedServices().redisUrl}/11`
const EMPTY = '{"resourceSpans":[]}'

let redis: Redis
let directory: Directory
let edges: readonly [TestEdge, TestEdge]

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  directory = createDirectory(redis)
  edges = [await startEdge(redisUrl), await startEdge(redisUrl)]
})
afterAll(async () => {
  for (const edge of edges) await edge.stop()
  redis.disconnect()
})

interface Answer {
  readonly status: number
  readonly retryAfter: number
  readonly message: string
}

async function send(key: string, { of = edges[0], body = EMPTY, origin = '' } = {}): Promise<Answer> {
  const response = await fetch(`${of.baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'x-service-public-key': key, 'content-type': 'application/json', ...(origin && { origin }) },
    body,
  })
  const text = await response.text()
  const { message = '' } = JSON.parse(text)
  return { status: response.status, retryAfter: Number(response.headers.get('retry-after')), message }
}

const exportOf = (bytes: number) => EMPTY.padEnd(bytes)
const issue = (key: Partial<SurfaceKey>) => issueKey(directory, key)

it('refuses requests over the quota per second, and accepts them again after the delay', async () => {
  const key = await issue({ quotas: { requestsPerSecond: 5 } })
  const answers = await Promise.all(Array.from({ length: 30 }, () => send(key)))
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(5)
  expect(refused.length).toBeGreaterThanOrEqual(15)
  expect(refused[0]).toMatchObject({ retryAfter: 1, message: expect.stringContaining('requestsPerSecond of 5') })
  await until('the key has room', async () => (await send(key)).status === 200)
  // The quota of one key is not that of another key of the same surface.
  expect((await send(await issue({}))).status).toBe(200)
})

it('counts the bytes of bodies, with and without an announced length', async () => {
  const key = await issue({ quotas: { bytesPerSecond: 100_000 } })
  expect((await send(key, { body: exportOf(90_000) })).status).toBe(200)
  const announced = await send(key, { body: exportOf(90_000) })
  expect(announced).toMatchObject({ status: 429, message: expect.stringContaining('bytesPerSecond of 100000') })
  const response = await fetch(`${edges[0].baseUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'x-service-public-key': key, 'content-type': 'application/json' },
    body: new Blob([exportOf(90_000)]).stream(),
    duplex: 'half',
  } as RequestInit)
  expect(response.status).toBe(429)
})

it('shares the bytes of a day among edges', async () => {
  const key = await issue({ quotas: { bytesPerDay: 10_000 } })
  for (const of of edges) expect((await send(key, { of, body: exportOf(6_000) })).status).toBe(200)
  for (const of of edges) {
    await until('the edge knows of both', async () => (await send(key, { of })).status === 429, { deadlineMs: 2_000 })
  }
  expect(await send(key)).toMatchObject({ retryAfter: 60, message: expect.stringContaining('bytesPerDay of 10000') })
  const [counter] = await redis.keys('*:quota:*')
  // Small requests were accepted until the edges knew of each other's bytes.
  const counted = Number(await redis.get(counter ?? ''))
  expect(counted).toBeGreaterThanOrEqual(12_000)
  expect(counted).toBeLessThan(15_000)
  expect(await redis.ttl(counter ?? '')).toBeGreaterThan(100_000)
})

it('states the quotas of a key and what is left of them', async () => {
  const headersOf = async (key: string, origin = '') => {
    const response = await fetch(`${edges[0].baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'x-service-public-key': key, 'content-type': 'application/json', ...(origin && { origin }) },
      body: EMPTY,
    })
    const { status, headers } = response
    return { status, policy: headers.get('ratelimit-policy'), left: headers.get('ratelimit'), headers }
  }
  const key = await issue({ quotas: { requestsPerSecond: 1, bytesPerDay: 1_000 } })
  const policy = '"requestsPerSecond";q=1;w=1, "bytesPerDay";q=1000;w=86400;qu="content-bytes"'
  const left = expect.stringMatching(/^"requestsPerSecond";r=0;t=1, "bytesPerDay";r=9\d\d;t=\d{1,5}$/)
  expect(await headersOf(key)).toMatchObject({ status: 200, policy, left })
  const refused = await until('the quota is used up', async () => {
    const answer = await headersOf(key, 'https://shop.example')
    return answer.status === 429 ? answer : undefined
  })
  expect(refused).toMatchObject({ policy, left: expect.stringMatching(/^"requestsPerSecond";r=0;t=1, /) })
  expect(refused.headers.get('access-control-expose-headers')).toContain('RateLimit, RateLimit-Policy')
  const secret = await issue({ kind: 'secret', scopes: ['release:write'], quotas: { requestsPerSecond: 100 } })
  const registered = await fetch(`${edges[0].baseUrl}/v3/releases`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: '{"version":"limited"}',
  })
  expect(registered.headers.get('ratelimit')).toMatch(/^"requestsPerSecond";r=\d+;t=1$/)
  for (const unlimited of [await issue({}), await issue({ allowedOrigins: ['https://shop.example'] })]) {
    expect(await headersOf(unlimited)).toMatchObject({ status: 200, policy: null, left: null })
  }
})

it('refuses pages of origins that the public key does not allow, on every operation, and passes servers', async () => {
  const key = await issue({ allowedOrigins: ['https://shop.example', 'https://*.apps.example'] })
  for (const origin of ['https://shop.example', 'https://a.apps.example', '']) {
    expect((await send(key, { origin })).status, origin).toBe(200)
  }
  for (const origin of ['https://evil.example', 'https://apps.example', 'null']) {
    expect(await send(key, { origin })).toMatchObject({
      status: 403,
      message: expect.stringContaining('allowedOrigins'),
    })
  }
  const beat = await fetch(`${edges[0].baseUrl}/v3/session`, {
    method: 'POST',
    headers: { 'x-service-public-key': key, origin: 'https://evil.example', 'content-type': 'application/json' },
    body: '{"sessionId":"s"}',
  })
  expect(beat.status).toBe(403)
  expect(beat.headers.get('access-control-allow-origin')).toBe('https://evil.example')
  expect(await beat.json()).toMatchObject({ code: 'PERMISSION_DENIED', service: 'frontier-auth' })
})

it('applies quotas to secret keys too, after their scope', async () => {
  const key = await issue({ kind: 'secret', scopes: ['release:write'], quotas: { requestsPerSecond: 1 } })
  const register = async () => {
    const response = await fetch(`${edges[0].baseUrl}/v3/releases`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"version":"1"}',
    })
    return { status: response.status, body: (await response.json()) as unknown }
  }
  expect((await register()).status).toBe(200)
  expect(await register()).toMatchObject({
    status: 429,
    body: { code: 'INGEST_BACKPRESSURE', service: 'frontier-buildtime' },
  })
})

it('applies changed quotas within a second', async () => {
  const key = await issue({ id: 'key_changed' })
  for (let i = 0; i < 3; i++) expect((await send(key)).status).toBe(200)
  const change = (quotas: SurfaceKey['quotas']) =>
    directory.updateSurfaceKey('ws_1', 'srf_1', 'key_changed', () => ({ quotas }))
  await change({ bytesPerDay: 1 })
  await until('the quota holds', async () => (await send(key)).status === 429, { deadlineMs: 1_000 })
  expect(await change({})).not.toHaveProperty('quotas')
  await until('the quota is gone', async () => (await send(key)).status === 200, { deadlineMs: 1_000 })
})
