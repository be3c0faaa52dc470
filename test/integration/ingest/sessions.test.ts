import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { request } from '../../support/clients/raw-http-client.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
const keys = queueKeys('sessions')
const UUID = '0190a6e4-7c1f-7d2a-9f00-0242ac120002'
const OTHER_UUID = '0190a6e4-7c1f-7d2a-9f00-0242ac120003'
const IDENTIFY = '/v3/session/identify'
const HEARTBEAT = '/v3/session'
const JSON_TYPE = { 'content-type': 'application/json' }

let redis: Redis
let edge: TestEdge
let pools: TestPools
let database: TestDatabase
let publicKey: string
let sessions = 0

beforeAll(async () => {
  redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  await redis.flushdb()
  publicKey = await issueKey(createDirectory(redis))
  database = await createTestDatabase(services.clickhouseUrl, `sessions_${process.pid}`)
  edge = await startEdge(redisUrl)
  pools = startPools(['sessions'], { ...services, redisUrl }, database.name)
})

afterAll(async () => {
  await pools?.stop()
  await edge?.stop()
  await database?.drop()
  redis?.disconnect()
})

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(edge.baseUrl + path, {
    method: 'POST',
    headers: { ...JSON_TYPE, 'x-service-public-key': publicKey, ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const newSession = () => `session-${process.pid}-${++sessions}`
const custom = { identifier: 'user-1', source: { type: 'custom', name: 'Our own' } }

async function accepted(): Promise<number> {
  return Number((await redis.hget(keys.flow, 'acceptedPayloads')) ?? 0)
}

function identities(sessionId: string) {
  return until('the identity is stored', async () => {
    const rows = await database.rows<Record<string, string>>(
      `SELECT * EXCEPT received_at FROM session_identities WHERE session_id = '${sessionId}' ORDER BY received_at`,
    )
    return rows.length > 0 ? rows : undefined
  })
}

describe('identify', () => {
  it('stores every field and returns a SessionResponse', async () => {
    const sessionId = newSession()
    const person = { avatar: 'https://x.example/a.png', email: 'zoe@mail.example', name: 'Zoë 李', country: 'DE' }
    const traits = '{ "id": 12345678901234567890, "__proto__": {"admin":true}, "2": [null], "1": "ü" }'
    const rest = JSON.stringify({
      sessionId,
      identifier: 'u 😀',
      source: { type: 'clerk', name: 'Clerk' },
      ...person,
      deviceId: UUID.toUpperCase(),
      visitorId: OTHER_UUID,
      fpHash: 'f',
      unknown: [1],
    })
    const answer = await post(IDENTIFY, `${rest.slice(0, -1)},"traits":${traits}}`)
    expect(answer).toMatchObject({ status: 200, body: { ok: true } })
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(await identities(sessionId)).toEqual([
      {
        workspace_id: 'ws_1',
        surface_id: 'srf_1',
        session_id: sessionId,
        identifier: 'u 😀',
        source_type: 'clerk',
        source_name: 'Clerk',
        device_id: UUID,
        visitor_id: OTHER_UUID,
        fp_hash: 'f',
        ...person,
        traits,
      },
    ])
  })

  it('accepts null where the specification does, and a beacon with its key in the query', async () => {
    const sessionId = newSession()
    const body = JSON.stringify({ sessionId, ...custom, deviceId: null, visitorId: null, fpHash: null })
    const path = `${IDENTIFY}?public_key=${publicKey}`
    const answer = await post(path, body, { 'content-type': 'text/plain;charset=UTF-8', 'x-service-public-key': '' })
    expect(answer.status).toBe(200)
    expect(await identities(sessionId)).toMatchObject([
      { device_id: '', visitor_id: '', fp_hash: '', email: '', traits: '{}' },
    ])
  })

  it('keeps the history of identities in the order of their arrival', async () => {
    const sessionId = newSession()
    for (const identifier of ['first', 'second', 'third']) await post(IDENTIFY, { ...custom, sessionId, identifier })
    await until('all are stored', async () => (await identities(sessionId)).length === 3)
    expect((await identities(sessionId)).map(row => row.identifier)).toEqual(['first', 'second', 'third'])
  })

  it('stores each of many at once exactly once', async () => {
    const sessionId = newSession()
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => post(IDENTIFY, { ...custom, sessionId, identifier: `user-${i}` })),
    )
    expect(answers.every(answer => answer.status === 200)).toBe(true)
    await until('all are stored', async () => (await identities(sessionId)).length >= 200)
    expect(new Set((await identities(sessionId)).map(row => row.identifier)).size).toBe(200)
    expect(await identities(sessionId)).toHaveLength(200)
  })

  it.each<[field: string, value: string]>([
    ['email', '""'],
    ['email', 'null'],
    ['email', '"nobody"'],
    ['name', '""'],
    ['name', 'null'],
    ['avatar', '7'],
    ['country', '"Germany"'],
    ['deviceId', '"d-1"'],
    ['traits', '[]'],
    ['traits', `${'{"a":'.repeat(101)}1${'}'.repeat(101)}`],
  ])('leaves out only %s when it is %s', async (field, value) => {
    const sessionId = newSession()
    const person = {
      avatar: 'a',
      email: 'root@localhost',
      name: 'Zoë',
      country: 'DE',
      deviceId: UUID,
      traits: { a: 1 },
    }
    const sent = JSON.stringify({ ...custom, sessionId, ...person, [field]: undefined })
    expect(await post(IDENTIFY, `${sent.slice(0, -1)},"${field}":${value}}`)).toMatchObject({
      status: 200,
      body: { ok: true },
    })
    const { deviceId: device_id, ...rest } = { ...person, traits: '{"a":1}' }
    const column = field === 'deviceId' ? 'device_id' : field
    const left = { [column]: field === 'traits' ? '{}' : '' }
    expect(await identities(sessionId)).toMatchObject([{ identifier: 'user-1', device_id, ...rest, ...left }])
  })

  it('takes a session id of 1,024 characters', async () => {
    const name = newSession()
    const sessionId = name + '😀'.repeat(1_024 - name.length)
    expect(await post(IDENTIFY, { ...custom, sessionId })).toMatchObject({ status: 200 })
    expect(await identities(sessionId)).toMatchObject([{ session_id: sessionId, identifier: 'user-1' }])
  })

  const refusals: [string, unknown, Record<string, string>, number, RegExp][] = [
    ['no field at all', {}, {}, 400, /^sessionId is required$/],
    ['an empty session id', { ...custom, sessionId: '' }, {}, 400, /^sessionId must have 1 to 1024 characters$/],
    ['an empty identifier', { ...custom, sessionId: 's', identifier: '' }, {}, 400, /^identifier must not be empty$/],
    [
      'a provider that is not configured',
      { ...custom, sessionId: 's', source: { type: 'okta', name: 'Okta' } },
      {},
      400,
      /^source.type must be one of/,
    ],
    [
      'a name of another provider',
      { ...custom, sessionId: 's', source: { type: 'auth0', name: 'Clerk' } },
      {},
      400,
      /^source.name must be Auth0/,
    ],
    ['null for a required text', { ...custom, sessionId: null }, {}, 400, /^sessionId must be a string$/],
    ['JSON that is not an object', [], {}, 400, /^the body must be a JSON object$/],
    ['no JSON', '{"sessionId":', {}, 400, /^the body is not valid JSON$/],
    ['an empty body', '', {}, 400, /^the body is not valid JSON$/],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), {}, 400, /^the body is not valid UTF-8$/],
    ['1 MB of traits', { ...custom, sessionId: 's', traits: { a: 'x'.repeat(1e6) } }, {}, 413, /256 KiB/],
    [
      'another content type',
      { ...custom, sessionId: 's' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
      /^content-type must be/,
    ],
    [
      'a compressed body',
      { ...custom, sessionId: 's' },
      { 'content-encoding': 'gzip' },
      415,
      /^content-encoding must be/,
    ],
  ]
  it('accepts the bytes of a beacon, which has no content type', async () => {
    const body = Buffer.from(JSON.stringify({ sessionId: newSession() }))
    const head = `POST ${HEARTBEAT}?public_key=${publicKey} HTTP/1.1\r\nhost: test\r\ncontent-length: ${body.length}\r\n\r\n`
    expect(await request(edge.port, head + body)).toMatchObject({ status: 200, body: '{"ok":true}' })
  })

  it.each(refusals)('refuses %s', async (_name, body, headers, status, message) => {
    const before = await accepted()
    const answer = await post(IDENTIFY, body, headers)
    expect(answer.status).toBe(status)
    expect(answer.body).toEqual({
      code: 'REQUEST_INVALID',
      message: expect.stringMatching(message),
      service: 'frontier-runtime',
    })
    expect(await accepted()).toBe(before)
  })

  it('accepts traits of nearly 256 KiB', async () => {
    const sessionId = newSession()
    const traits = { a: 'ü'.repeat(125_000) }
    expect((await post(IDENTIFY, { ...custom, sessionId, traits })).status).toBe(200)
    const [row] = await identities(sessionId)
    expect(JSON.parse(row?.traits ?? '')).toEqual(traits)
  })
})

describe('heartbeat', () => {
  it('stores a device of a session', async () => {
    const sessionId = newSession()
    const body = { sessionId, deviceId: UUID, visitorId: OTHER_UUID, fpHash: 'f' }
    expect(await post(HEARTBEAT, body)).toMatchObject({ status: 200, body: { ok: true } })
    expect(await post(HEARTBEAT, { sessionId })).toMatchObject({ status: 200, body: { ok: true } })
    const rows = await until('both devices are stored', async () => {
      const stored = await database.rows(
        `SELECT * EXCEPT received_at FROM session_heartbeats WHERE session_id = '${sessionId}' ORDER BY device_id DESC`,
      )
      return stored.length === 2 ? stored : undefined
    })
    const origin = { workspace_id: 'ws_1', surface_id: 'srf_1', session_id: sessionId }
    expect(rows).toEqual([
      { ...origin, device_id: UUID, visitor_id: OTHER_UUID, fp_hash: 'f' },
      { ...origin, device_id: '', visitor_id: '', fp_hash: '' },
    ])
  })

  it.each([
    { deviceId: null, visitorId: null, fpHash: null },
    { deviceId: '', visitorId: 'v', fpHash: 5 },
  ])('stores a heartbeat without %j', async device => {
    const sessionId = newSession()
    expect(await post(HEARTBEAT, { sessionId, ...device })).toMatchObject({ status: 200, body: { ok: true } })
    const query = `SELECT device_id, visitor_id, fp_hash FROM session_heartbeats WHERE session_id = '${sessionId}'`
    const none = { device_id: '', visitor_id: '', fp_hash: '' }
    expect(await until('it is stored', async () => (await database.rows(query))[0])).toEqual(none)
  })

  it.each([
    [{}, /^sessionId is required$/],
    [{ sessionId: 'x'.repeat(1_025), deviceId: UUID }, /^sessionId must have 1 to 1024 characters$/],
  ])('refuses %j', async (body, message) => {
    const answer = await post(HEARTBEAT, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ code: 'REQUEST_INVALID', message: expect.stringMatching(message) })
  })
})

describe('both operations', () => {
  it.each([IDENTIFY, HEARTBEAT])('%s checks the key first', async path => {
    const none = await post(path, 'x', { 'x-service-public-key': '', 'content-type': 'text/csv' })
    expect(none).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING', service: 'frontier-auth' } })
    const wrong = await post(path, 'x'.repeat(300_000), { 'x-service-public-key': generateKey('public') })
    expect(wrong).toMatchObject({ status: 401, body: { code: 'AUTH_PK_INVALID', service: 'frontier-auth' } })
  })

  it.each([IDENTIFY, HEARTBEAT])('%s accepts only POST', async path => {
    const answer = await fetch(edge.baseUrl + path)
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST, OPTIONS')
  })

  it.each([IDENTIFY, HEARTBEAT])('%s can be called by a page of any origin', async path => {
    const headers = { origin: 'https://shop.example', 'access-control-request-method': 'POST' }
    const preflight = await fetch(edge.baseUrl + path, { method: 'OPTIONS', headers })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://shop.example')
    expect(preflight.headers.get('access-control-allow-credentials')).toBe('true')
    const refused = await post(path, {}, { origin: 'https://shop.example' })
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://shop.example')
    expect(refused.headers.get('access-control-expose-headers')).toMatch(/retry-after/i)
  })

  it('return 429 when too many requests wait, before they read the body', async () => {
    const full = await startEdge(redisUrl, { QUEUE_MAX_COST: '1000000' })
    await redis.hincrby(keys.flow, 'acceptedCost', 1_000_000)
    try {
      const answer = await until('the edge has seen the queue', async () => {
        const response = await fetch(full.baseUrl + HEARTBEAT, {
          method: 'POST',
          headers: { ...JSON_TYPE, 'x-service-public-key': publicKey },
          body: 'not JSON',
        })
        return response.status === 429 ? response : undefined
      })
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(await answer.json()).toMatchObject({ code: 'INGEST_BACKPRESSURE', service: 'frontier-runtime' })
    } finally {
      await redis.hincrby(keys.flow, 'doneCost', 1_000_000)
      await full.stop()
    }
  })
})
