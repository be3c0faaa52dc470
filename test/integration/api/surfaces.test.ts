import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  surfaceCreatedSchema,
  surfaceKeyCreatedSchema,
  surfaceKeysPageSchema,
  surfacesPageSchema,
  workspaceKeyCreatedSchema,
} from '../../../schemas/http/workspaces/schemas.ts'
import { PERMISSIONS, type Permission } from '../../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../../schemas/records/key-form.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { SURFACE_KEYS_MAX } from '../../../shared/directory/surface-keys.ts'
import { SURFACES_MAX } from '../../../shared/directory/surfaces.ts'
import { WORKSPACE_KEYS_MAX } from '../../../shared/directory/workspace-keys.ts'
import { digestOf } from '../../../shared/ids/credentials.ts'
import { type Answer, call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const MOST_MS_TO_REVOKE = 1_000

describe('surfaces and their keys', () => {
  const services = sharedServices()
  let api: TestApi
  let edge: TestEdge
  let redis: Redis
  /** How far the clock of the API is ahead, in milliseconds. */
  let aheadMs = 0

  beforeAll(async () => {
    redis = new Redis(services.redisUrl)
    api = await startApi(services, 'default', {}, () => Date.now() + aheadMs)
    edge = await startEdge(services.redisUrl)
  })
  afterAll(async () => {
    await edge.stop()
    await api.stop()
    redis.disconnect()
  })

  /** Creates a workspace and returns the calls of its only member. */
  async function workspace(permissions: readonly Permission[] = PERMISSIONS) {
    const id = newId('ws')
    const slug = id.replace('_', '-')
    await putWorkspace(services.redisUrl, { id, slug, permissions })
    const token = await signToken({ org: slug })
    const ask = (operation: string, body?: unknown, bearer = token) => call(api.baseUrl, operation, { bearer, body })
    const makeSurface = async (name = 'Shop') =>
      surfaceCreatedSchema.parse((await ask('POST /v3/surfaces', { name })).body).surface
    const makeKey = async (surfaceId: string, body: object) =>
      surfaceKeyCreatedSchema.parse((await ask(`POST /v3/surfaces/${surfaceId}/keys`, body)).body).key
    return { id, slug, token, ask, makeSurface, makeKey }
  }

  const heartbeat = (publicKey: string) =>
    call(edge.baseUrl, 'POST /v3/session', {
      body: { sessionId: 'session-1' },
      headers: { 'x-service-public-key': publicKey },
    })
  const register = (bearer: string) => call(edge.baseUrl, 'POST /v3/releases', { bearer, body: { version: '1' } })
  const expectNotFound = (answer: Answer, message: string) =>
    expect(answer).toMatchObject({ status: 404, body: { code: 'NOT_FOUND', message, service: 'gateway' } })

  it('creates, lists and deletes a surface', async () => {
    const { ask } = await workspace()
    const answer = await ask('POST /v3/surfaces', { name: 'Shop' })
    expect(answer.status).toBe(201)
    const { surface } = surfaceCreatedSchema.parse(answer.body)
    expect(surface.name).toBe('Shop')
    expect((await ask('GET /v3/surfaces')).body).toEqual({ surfaces: [surface], nextCursor: null })
    expect(await ask(`DELETE /v3/surfaces/${surface.id}`)).toMatchObject({ status: 200, body: { ok: true } })
    expect((await ask('GET /v3/surfaces')).body).toEqual({ surfaces: [], nextCursor: null })
    expectNotFound(await ask(`DELETE /v3/surfaces/${surface.id}`), 'there is no such surface')
  })

  it('lists surfaces page by page, the newest first', async () => {
    const { ask, makeSurface } = await workspace()
    const made: string[] = []
    for (let i = 0; i < 5; i++) {
      made.unshift((await makeSurface(`surface ${i}`)).id)
      aheadMs++
    }
    const listed: string[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `&cursor=${cursor}`
      const page = surfacesPageSchema.parse((await ask(`GET /v3/surfaces?limit=2${query}`)).body)
      listed.push(...page.surfaces.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(listed).toEqual(made)
  })

  it.each([
    ['public', undefined],
    ['secret', ['release:write']],
  ] as const)(
    'a %s key works at the edge at once, and stops within a second of being revoked',
    async (kind, scopes) => {
      const { ask, makeSurface, makeKey } = await workspace()
      const { id } = await makeSurface()
      const key = await makeKey(id, { kind, scopes })
      expect(key).toEqual({ id: key.id, kind, secret: key.secret, ...(scopes && { scopes }), expiresAt: null })
      expect(isWellFormedKey(kind, key.secret)).toBe(true)
      const use = kind === 'public' ? heartbeat : register
      expect((await use(key.secret)).status).toBe(200)

      expect(await ask(`DELETE /v3/surfaces/${id}/keys/${key.id}`)).toMatchObject({ status: 200, body: { ok: true } })
      const refused = async () => (await use(key.secret)).status === 401
      await until('the key is refused', refused, { deadlineMs: MOST_MS_TO_REVOKE })
      const again = await ask(`DELETE /v3/surfaces/${id}/keys/${key.id}`)
      expect(again).toMatchObject({ status: 200, body: { ok: true } })
    },
  )

  it('stops accepting the keys of a deleted surface within a second', async () => {
    const { ask, makeSurface, makeKey } = await workspace()
    const { id } = await makeSurface()
    const keys = [await makeKey(id, { kind: 'public' }), await makeKey(id, { kind: 'public' })]
    const secretKey = await makeKey(id, { kind: 'secret', scopes: ['release:write'] })
    const useAll = () => Promise.all([register(secretKey.secret), ...keys.map(({ secret }) => heartbeat(secret))])
    for (const { status } of await useAll()) expect(status).toBe(200)
    expect((await ask(`DELETE /v3/surfaces/${id}`)).status).toBe(200)
    const refused = async () => {
      const answers = await useAll()
      return answers.every(({ status }) => status === 401)
    }
    await until('the keys are refused', refused, { deadlineMs: MOST_MS_TO_REVOKE })
    expectNotFound(await ask(`GET /v3/surfaces/${id}/keys`), 'there is no such surface')
    expectNotFound(await ask(`POST /v3/surfaces/${id}/keys`, { kind: 'public' }), 'there is no such surface')
  })

  it('leaves no key of a surface that is deleted while keys are created', async () => {
    const { ask, makeSurface } = await workspace()
    const { id } = await makeSurface()
    const making = Array.from({ length: 20 }, () => ask(`POST /v3/surfaces/${id}/keys`, { kind: 'public' }))
    const [deleted, ...answers] = await Promise.all([ask(`DELETE /v3/surfaces/${id}`), ...making])
    expect(deleted.status).toBe(200)
    const made = answers.filter(({ status }) => status === 201)
    expect(answers.every(({ status }) => status === 201 || status === 404)).toBe(true)
    for (const answer of made) {
      const { secret } = surfaceKeyCreatedSchema.parse(answer.body).key
      expect((await heartbeat(secret)).status).toBe(401)
    }
  })

  it('limits the active keys of a surface', async () => {
    const { id: workspaceId, ask, makeSurface } = await workspace()
    const { id } = await makeSurface()
    const others = Array.from({ length: SURFACE_KEYS_MAX - 1 }, () => digestOf(randomUUID()))
    await redis.sadd(directoryKeys.surfaceKeys(workspaceId, id), ...others)
    const { body } = await ask(`POST /v3/surfaces/${id}/keys`, { kind: 'public' })
    const { key } = surfaceKeyCreatedSchema.parse(body)
    expect(await ask(`POST /v3/surfaces/${id}/keys`, { kind: 'public' })).toMatchObject({
      status: 400,
      body: {
        code: 'REQUEST_INVALID',
        message: expect.stringContaining('at most 5000 active keys'),
        service: 'operation',
      },
    })
    // A key that has ended makes room.
    expect((await ask(`DELETE /v3/surfaces/${id}/keys/${key.id}`)).status).toBe(200)
    expect((await ask(`POST /v3/surfaces/${id}/keys`, { kind: 'public' })).status).toBe(201)
    expect((await ask(`DELETE /v3/surfaces/${id}`)).status).toBe(200)
  })

  it('limits the surfaces of a workspace and its API keys', async () => {
    const { id: workspaceId, slug, ask } = await workspace()
    const zeros = (count: number) => Array.from({ length: count }, (_, i) => [0, `id${i}`]).flat()
    await redis.zadd(directoryKeys.surfaces(workspaceId), ...zeros(SURFACES_MAX - 1))
    const last = surfaceCreatedSchema.parse((await ask('POST /v3/surfaces', { name: 'The last' })).body).surface
    expect(await ask('POST /v3/surfaces', { name: 'One more' })).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: expect.stringContaining('at most 10000 surfaces') },
    })
    // A deleted surface does not count.
    expect((await ask(`DELETE /v3/surfaces/${last.id}`)).status).toBe(200)
    expect((await ask('POST /v3/surfaces', { name: 'The next' })).status).toBe(201)
    await redis.zadd(directoryKeys.workspaceKeys(workspaceId), ...zeros(WORKSPACE_KEYS_MAX))
    const key = { idempotencyKey: randomUUID(), name: 'k', scopes: ['org:surfaces:read'], secondsUntilExpiration: null }
    expect(await ask(`POST /v3/workspaces/${slug}/api-keys`, key)).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: expect.stringContaining('at most 10000 API keys') },
    })
  })

  it('sets, changes and removes the quotas and allowed origins of a key', async () => {
    const { ask, makeSurface, makeKey } = await workspace()
    const { id } = await makeSurface()
    const quotas = { requestsPerSecond: 1_000, bytesPerDay: 10_000_000 }
    const allowedOrigins = ['https://shop.example']
    const key = await makeKey(id, { kind: 'public', quotas, allowedOrigins })
    expect(key).toMatchObject({ quotas, allowedOrigins })
    const path = `/v3/surfaces/${id}/keys/${key.id}`
    const listed = async () =>
      surfaceKeysPageSchema.parse((await ask(`GET /v3/surfaces/${id}/keys`)).body).keys.find(each => each.id === key.id)
    expect(await listed()).toMatchObject({ quotas, allowedOrigins, createdBy: { apiKeyId: null, apiKeyState: null } })

    const changed = await ask(`PATCH ${path}`, { quotas: { requestsPerSecond: null, bytesPerSecond: 5 } })
    expect(changed).toMatchObject({ status: 200, body: { key: { allowedOrigins } } })
    expect((await listed())?.quotas).toEqual({ bytesPerSecond: 5, bytesPerDay: 10_000_000 })
    expect((await ask(`PATCH ${path}`, { quotas: null, allowedOrigins: null })).status).toBe(200)
    expect(await listed()).not.toHaveProperty('quotas')
    expect(await listed()).not.toHaveProperty('allowedOrigins')

    for (const [body, message] of [
      [{}, /at least one field/],
      [{ quotas: { requestsPerSecond: 0 } }, /^quotas.requestsPerSecond must be a whole number/],
      [{ quotas: { perSecond: 1 } }, /^quotas must not have the field "perSecond"/],
      [{ allowedOrigins: ['shop.example'] }, /^allowedOrigins.0 must be an origin/],
      [{ allowedOrigins: [] }, /^allowedOrigins must have at least one origin/],
    ] as const) {
      const refused = await ask(`PATCH ${path}`, body)
      const expected = { code: 'REQUEST_INVALID', message: expect.stringMatching(message), service: 'operation' }
      expect(refused).toMatchObject({ status: 400, body: expected })
    }
    const secret = await makeKey(id, { kind: 'secret', scopes: [] })
    expect(await ask(`PATCH /v3/surfaces/${id}/keys/${secret.id}`, { allowedOrigins })).toMatchObject({ status: 400 })
    expectNotFound(await ask(`PATCH /v3/surfaces/${id}/keys/key_0`, { quotas: null }), 'the surface has no such key')
  })

  it('ends a secret key with the API key that made it, and shows that of a public key', async () => {
    const { slug, ask, makeSurface } = await workspace()
    const { id } = await makeSurface()
    const scopes = ['org:surfaces:write']
    const request = { idempotencyKey: randomUUID(), name: 'ci', scopes, secondsUntilExpiration: null }
    const made = await ask(`POST /v3/workspaces/${slug}/api-keys`, request)
    const { apiKey } = workspaceKeyCreatedSchema.parse(made.body)
    const make = async (body: object) =>
      surfaceKeyCreatedSchema.parse((await ask(`POST /v3/surfaces/${id}/keys`, body, apiKey.secret)).body).key
    const secretKey = await make({ kind: 'secret', scopes: ['release:write'] })
    const publicKey = await make({ kind: 'public' })
    expect([(await register(secretKey.secret)).status, (await heartbeat(publicKey.secret)).status]).toEqual([200, 200])

    expect((await ask(`DELETE /v3/workspaces/${slug}/api-keys/${apiKey.id}`)).status).toBe(200)
    const isRefused = async () => (await register(secretKey.secret)).status === 401
    await until('the secret key is refused', isRefused, { deadlineMs: 11_000 })
    expect((await heartbeat(publicKey.secret)).status).toBe(200)
    const page = surfaceKeysPageSchema.parse((await ask(`GET /v3/surfaces/${id}/keys`)).body)
    const makers = page.keys.map(({ createdBy }) => createdBy)
    expect(makers).toEqual(Array(2).fill({ userId: 'user_1', apiKeyId: apiKey.id, apiKeyState: 'revoked' }))
  }, 20_000)

  it('gives a secret key its scopes and expiry and shows it once, and shows a public key in lists', async () => {
    const { ask, makeSurface, makeKey } = await workspace()
    const { id } = await makeSurface()
    const before = Date.now()
    const secretKey = await makeKey(id, { kind: 'secret', scopes: ['release:write'], secondsUntilExpiration: 60 })
    const none = await makeKey(id, { kind: 'secret', scopes: [], secondsUntilExpiration: null })
    const publicKey = await makeKey(id, { kind: 'public', name: 'The shop' })
    expect(publicKey.name).toBe('The shop')
    expect(isWellFormedKey('secret', secretKey.secret)).toBe(true)
    expect(secretKey.scopes).toEqual(['release:write'])
    const expiresAtMs = Date.parse(secretKey.expiresAt ?? '')
    expect(expiresAtMs).toBeGreaterThanOrEqual(before + 60_000)
    expect(expiresAtMs).toBeLessThanOrEqual(Date.now() + aheadMs + 60_000)
    expect(none).toMatchObject({ scopes: [], expiresAt: null })

    const answer = await ask(`GET /v3/surfaces/${id}/keys`)
    const { keys } = surfaceKeysPageSchema.parse(answer.body)
    expect(new Set(keys.map(key => key.id))).toEqual(new Set([secretKey.id, none.id, publicKey.id]))
    const listed = keys.find(key => key.id === secretKey.id)
    const prefix = secretKey.secret.slice(0, 6)
    const unused = { usage: { lastUsedAt: null, requestsToday: 0 } }
    expect(listed).toMatchObject({ kind: 'secret', name: 'Secret key', publicKey: null, prefix, ...unused })
    const shown = { kind: 'public', name: 'The shop', publicKey: publicKey.secret, ...unused }
    expect(keys.find(key => key.id === publicKey.id)).toMatchObject(shown)
    for (const { secret } of [secretKey, none]) {
      expect(JSON.stringify(answer.body)).not.toContain(secret.slice(0, 7))
    }
    const page = surfaceKeysPageSchema.parse((await ask(`GET /v3/surfaces/${id}/keys?limit=2`)).body)
    const rest = await ask(`GET /v3/surfaces/${id}/keys?limit=2&cursor=${page.nextCursor}`)
    expect([...page.keys, ...surfaceKeysPageSchema.parse(rest.body).keys]).toEqual(keys)
  })

  it.each<[string, unknown, string]>([
    ['no kind', {}, 'kind is required'],
    ['another kind', { kind: 'workspace' }, 'kind must be one of public, secret'],
    ['no object', 'public', 'the body must be a JSON object'],
    ['scopes for a public key', { kind: 'public', scopes: [] }, 'scopes must be left out: a public key has none'],
    ['no scopes for a secret key', { kind: 'secret' }, 'scopes is required'],
    ['scopes that are no list', { kind: 'secret', scopes: 'release:write' }, 'scopes must be an array of scopes'],
    [
      'an unknown scope',
      { kind: 'secret', scopes: ['release:write', 'org:surfaces:read'] },
      'scopes.1 must be a scope of secret keys: release:write; not "org:surfaces:read"',
    ],
    ['a scope that is not a text', { kind: 'secret', scopes: [7] }, 'scopes.0 must be a scope of secret keys'],
    ['an expiry of no time', { kind: 'public', secondsUntilExpiration: 0 }, 'secondsUntilExpiration must be a whole'],
    ['a name of no character', { kind: 'public', name: '' }, 'name must have 1 to 120 characters'],
    ['a field too many', { kind: 'public', expiresIn: 5 }, 'the body must not have the field "expiresIn"'],
  ])('refuses to create a key with %s', async (_, body, message) => {
    const { ask, makeSurface } = await workspace()
    const { id } = await makeSurface()
    expect(await ask(`POST /v3/surfaces/${id}/keys`, JSON.stringify(body))).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: expect.stringContaining(message), service: 'operation' },
    })
  })

  it('refuses a surface without a name', async () => {
    const { ask } = await workspace()
    for (const body of [{}, { name: '' }, { name: 7 }, { name: 'n'.repeat(121) }, { name: 'Shop', id: 'srf_1' }]) {
      const answer = await ask('POST /v3/surfaces', body)
      expect(answer).toMatchObject({ status: 400, body: { code: 'REQUEST_INVALID', service: 'operation' } })
    }
  })

  it('checks route and method, credential, permission, size, type and shape in this order', async () => {
    const { slug, ask } = await workspace(['org:surfaces:read'])
    const all = await workspace()
    const nobody = await signToken({ org: slug, sub: 'nobody' })
    const large = 'x'.repeat(256 * 1024 + 1)
    const send = (operation: string, bearer: string | undefined, body: string, type = 'application/json') =>
      call(api.baseUrl, operation, { bearer, body, headers: { 'content-type': type } })
    const at = 'POST /v3/surfaces'
    const told: [Answer, number, string][] = [
      [await send('POST /v3/surface', undefined, large), 404, 'NOT_FOUND'],
      [await send('PUT /v3/surfaces', undefined, large), 405, 'METHOD_NOT_ALLOWED'],
      [await send(at, undefined, large, 'text/plain'), 401, 'AUTH_MISSING'],
      [await send(at, await signToken({ org: undefined }), large, 'text/plain'), 403, 'AUTH_ORG_REQUIRED'],
      [await send(at, nobody, large, 'text/plain'), 404, 'NOT_FOUND'],
      [await ask(at, large), 403, 'PERMISSION_DENIED'],
      [await send(at, await signToken({ org: all.slug }), large, 'text/plain'), 413, 'REQUEST_INVALID'],
      [await send(at, await signToken({ org: all.slug }), '{', 'text/plain'), 415, 'REQUEST_INVALID'],
      [await all.ask(at, '{'), 400, 'REQUEST_INVALID'],
    ]
    expect(told.map(([{ status, body }]) => ({ status, body }))).toMatchObject(
      told.map(([, status, code]) => ({ status, body: { code } })),
    )
  })

  it('refuses a slow body when the membership ended while it was sent', async () => {
    const { id: workspaceId, ask, makeSurface, token } = await workspace()
    const { id } = await makeSurface()
    const body = JSON.stringify({ kind: 'public' })
    const request = httpRequest(`${api.baseUrl}/v3/surfaces/${id}/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': body.length },
    })
    const answered = once(request, 'response') as Promise<[IncomingMessage]>
    request.write(body.slice(0, 5))
    // By then the head of the request has been accepted.
    for (let i = 0; i < 5; i++) expect((await ask('GET /v3/surfaces')).status).toBe(200)
    const directory = createDirectory(redis)
    expect(await directory.removeMember(workspaceId, 'user_1')).toBe('removed')
    request.end(body.slice(5))
    const [response] = await answered
    response.resume()
    expect(response.statusCode).toBe(404)
    expect(await directory.surfaceKeys(workspaceId, id)).toEqual([])
  })

  it('requires the permission of each operation from users and from workspace keys', async () => {
    const operations: [Permission, string, unknown?][] = [
      ['org:surfaces:read', 'GET /v3/surfaces'],
      ['org:surfaces:write', 'POST /v3/surfaces', { name: 'Shop' }],
      ['org:surfaces:delete', 'DELETE /v3/surfaces/srf_1'],
      ['org:surfaces:read', 'GET /v3/surfaces/srf_1/keys'],
      ['org:surfaces:write', 'POST /v3/surfaces/srf_1/keys', { kind: 'public' }],
      ['org:surfaces:delete', 'DELETE /v3/surfaces/srf_1/keys/key_1'],
    ]
    const all = await workspace()
    for (const [needed, operation, body] of operations) {
      const others = PERMISSIONS.filter(permission => permission !== needed)
      const user = await workspace(others)
      const made = await all.ask(`POST /v3/workspaces/${all.slug}/api-keys`, {
        idempotencyKey: randomUUID(),
        name: operation,
        scopes: others,
        secondsUntilExpiration: null,
      })
      expect(made.status).toBe(201)
      const key = workspaceKeyCreatedSchema.parse(made.body).apiKey.secret
      for (const answer of [await user.ask(operation, body), await all.ask(operation, body, key)]) {
        expect(answer).toMatchObject({
          status: 403,
          body: { code: 'PERMISSION_DENIED', message: expect.stringContaining(`the permission ${needed} is required`) },
        })
      }
    }
  })
})
