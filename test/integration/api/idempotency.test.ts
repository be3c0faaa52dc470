import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { allOperations } from '../../../schemas/http/all-operations.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { CREATIONS_MAX } from '../../../shared/directory/creations.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { call, FAR_EXPIRY, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const workspaceId = newId('ws')
const slug = workspaceId.replace('_', '-')
const apiKeys = `/v3/workspaces/${slug}/api-keys`
let api: TestApi
let redis: Redis
let token: string
let surfaceId: string
let nowMs = Date.now()

beforeAll(async () => {
  redis = new Redis(services.redisUrl)
  await putWorkspace(services.redisUrl, { id: workspaceId, slug })
  api = await startApi(services, 'default', {}, () => nowMs)
  token = await signToken({ org: slug, exp: FAR_EXPIRY })
  const { body } = await post('/v3/surfaces', { name: 'Shop' })
  surfaceId = (body as { surface: { id: string } }).surface.id
})
afterAll(async () => {
  await api?.stop()
  redis?.disconnect()
})

const post = (path: string, body: unknown, key?: string, bearer = token) =>
  call(api.baseUrl, `POST ${path}`, { bearer, body, headers: key === undefined ? {} : { 'idempotency-key': key } })

/** Each operation of the API that creates something of the directory, with two requests. Comments are in finding-work.test.ts. */
const CREATIONS: [name: string, path: () => string, body: object, other: object][] = [
  ['a surface', () => '/v3/surfaces', { name: 'One' }, { name: 'Two' }],
  ['a public key', () => `/v3/surfaces/${surfaceId}/keys`, { kind: 'public' }, { kind: 'secret', scopes: [] }],
  [
    'a secret key',
    () => `/v3/surfaces/${surfaceId}/keys`,
    { kind: 'secret', scopes: ['release:write'], quotas: { requestsPerSecond: 1, bytesPerDay: 2 } },
    { kind: 'secret', scopes: ['release:write'] },
  ],
  [
    'an API key',
    () => apiKeys,
    { scopes: ['org:surfaces:read', 'org:surfaces:write'], secondsUntilExpiration: null },
    { scopes: ['org:surfaces:read'], secondsUntilExpiration: null },
  ],
  [
    'a member',
    () => '/v3/members',
    { userId: 'user_new', permissions: ['org:findings:read'] },
    { userId: 'user_new', permissions: [] },
  ],
  ['an erasure', () => '/v3/erasures', { sessionId: 'gone' }, { sessionId: 'gone too' }],
]

it.each(CREATIONS)('%s is created once for a key, also by many requests at once', async (_, path, body, other) => {
  const key = randomUUID()
  const answers = await Promise.all(Array.from({ length: 8 }, () => post(path(), body, key)))
  const [first] = answers
  expect(first?.status).toBe(201)
  for (const answer of answers) expect(answer).toMatchObject({ status: 201, body: first?.body })
  const reordered = Object.fromEntries(Object.entries(body).reverse())
  expect(await post(path(), reordered, `"${key.toUpperCase()}"`)).toMatchObject({ status: 201, body: first?.body })
  expect(await post(path(), other, key)).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT' } })
  nowMs += DAY_MS
  const later = await post(path(), body, key)
  expect(later.status).toBe(201)
})

it('a key of a surface is given out again with its secret, which is not stored, until it is revoked', async () => {
  const key = randomUUID()
  const path = `/v3/surfaces/${surfaceId}/keys`
  const ask = () => post(path, { kind: 'secret', scopes: ['release:write'] }, key)
  const { body } = await ask()
  const { id, secret } = (body as { key: { id: string; secret: string } }).key
  for (const name of await redis.keys(`*${workspaceId}*`)) {
    if ((await redis.type(name)) === 'string') expect(await redis.get(name)).not.toContain(secret)
  }
  expect((await ask()).body).toEqual(body)
  await call(api.baseUrl, `DELETE ${path}/${id}`, { bearer: token })
  const message = 'Idempotency-Key belongs to a key that is revoked'
  expect(await ask()).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT', message } })
})

it('keys belong to one caller, and to one operation', async () => {
  const key = randomUUID()
  const made = await post(apiKeys, { scopes: ['org:surfaces:write'], secondsUntilExpiration: null })
  const { secret } = (made.body as { apiKey: { secret: string } }).apiKey
  const answers = [
    await post('/v3/surfaces', { name: 'Mine' }, key),
    await post('/v3/surfaces', { name: 'By automation' }, key, secret),
    await post(`/v3/surfaces/${surfaceId}/keys`, { kind: 'public' }, key),
  ]
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
})

it('the header and the field idempotencyKey of an API key are one', async () => {
  const idempotencyKey = randomUUID()
  const asked = { scopes: ['org:surfaces:read'], secondsUntilExpiration: null }
  const first = await post(apiKeys, { ...asked, idempotencyKey })
  expect(await post(apiKeys, asked, idempotencyKey)).toMatchObject({ status: 201, body: first.body })
  expect(await post(apiKeys, { ...asked, idempotencyKey }, randomUUID())).toMatchObject({
    status: 400,
    body: { message: 'Idempotency-Key must be absent or the same as idempotencyKey' },
  })
})

it.each(['a b', 'x'.repeat(256)])('a malformed key is refused: %s', async key => {
  expect(await post('/v3/surfaces', { name: 'One' }, key)).toMatchObject({
    status: 400,
    body: { message: 'Idempotency-Key must have 1 to 255 visible ASCII characters', service: 'operation' },
  })
})

it('a refused request is not remembered', async () => {
  const key = randomUUID()
  const absent = newId('srf')
  expect((await post(`/v3/surfaces/${absent}/keys`, { kind: 'public' }, key)).status).toBe(404)
  expect((await post(`/v3/surfaces/${surfaceId}/keys`, { kind: 'public' }, key)).status).toBe(201)
})

it('a workspace has a bounded number of creations that may be repeated', async () => {
  const index = directoryKeys.creations(workspaceId)
  const entries = Array.from({ length: CREATIONS_MAX }, (_, i) => [String(nowMs + DAY_MS), `x${i}`]).flat()
  await redis.zadd(index, ...entries)
  expect(await post('/v3/surfaces', { name: 'One' }, randomUUID())).toMatchObject({
    status: 429,
    body: { code: 'INGEST_BACKPRESSURE', message: expect.stringContaining('without the header') },
  })
  expect((await post('/v3/surfaces', { name: 'One' })).status).toBe(201)
})

it('every operation that creates takes the header, and no other', () => {
  const operations = allOperations({ identityProviders: [] })
  const creates = operations.filter(
    ({ method, success, operationId }) =>
      (method === 'POST' && success.status === 201) || operationId === 'registerRelease',
  )
  const takes = operations.filter(({ parameters }) => 'idempotency-key' in (parameters?.header?.shape ?? {}))
  expect(takes.map(({ operationId }) => operationId)).toEqual(creates.map(({ operationId }) => operationId))
})
