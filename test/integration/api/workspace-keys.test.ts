import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { workspaceKeyCreatedSchema, workspaceKeysPageSchema } from '../../../schemas/http/workspaces/schemas.ts'
import { PERMISSIONS, type Permission } from '../../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../../schemas/records/key-form.ts'
import { DAY_MS, HOUR_MS, KIB } from '../../../schemas/units.ts'
import { createDirectory, type Directory, newId } from '../../../shared/directory/directory.ts'
import {
  type Answer,
  call,
  FAR_EXPIRY,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

describe('workspace API keys', () => {
  const services = sharedServices()
  const workspaceId = newId('ws')
  const slug = workspaceId.replace('_', '-')
  const path = `/v3/workspaces/${slug}/api-keys`
  let api: TestApi
  let redis: Redis
  let directory: Directory
  let token: string
  let nowMs = Date.now()

  beforeAll(async () => {
    redis = new Redis(services.redisUrl)
    directory = createDirectory(redis)
    await putWorkspace(services.redisUrl, { id: workspaceId, slug })
    api = await startApi(services, 'default', {}, () => nowMs)
    token = await signToken({ org: slug, exp: FAR_EXPIRY })
  })
  afterAll(async () => {
    await api.stop()
    redis.disconnect()
  })

  const request = (change: object = {}) => ({
    idempotencyKey: randomUUID(),
    name: 'deploys',
    scopes: ['org:surfaces:read', 'org:surfaces:write'],
    secondsUntilExpiration: null,
    ...change,
  })
  const create = (body: unknown, bearer = token) => call(api.baseUrl, `POST ${path}`, { bearer, body })
  const revoke = (id: string, bearer = token) => call(api.baseUrl, `DELETE ${path}/${id}`, { bearer })
  const listSurfaces = (bearer: string) => call(api.baseUrl, 'GET /v3/surfaces', { bearer })
  const made = (answer: Answer) => workspaceKeyCreatedSchema.parse(answer.body).apiKey
  const expectConflict = (answer: Answer, message: string) =>
    expect(answer).toMatchObject({
      status: 409,
      body: { code: 'IDEMPOTENCY_CONFLICT', message: `idempotencyKey ${message}`, service: 'operation' },
    })

  it('are created and work at once', async () => {
    const asked = request({ secondsUntilExpiration: 3_600 })
    const answer = await create(asked)
    expect(answer.status).toBe(201)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const key = made(answer)
    expect(key).toMatchObject({ name: asked.name, scopes: asked.scopes })
    expect(key.createdAt).toBe(new Date(nowMs).toISOString())
    expect(key.expiresAt).toBe(new Date(nowMs + HOUR_MS).toISOString())
    expect(isWellFormedKey('workspace', key.secret)).toBe(true)
    expect((await listSurfaces(key.secret)).status).toBe(200)
  })

  it('are returned unchanged when the request is repeated within 24 hours', async () => {
    const asked = request({ secondsUntilExpiration: 60 })
    const first = await create(asked)
    const again = { ...asked, idempotencyKey: asked.idempotencyKey.toUpperCase(), scopes: [...asked.scopes].reverse() }
    for (const ms of [0, 1_000, DAY_MS - 1_001]) {
      nowMs += ms
      const repeat = await create(again)
      expect(repeat).toMatchObject({ status: 201, body: first.body })
    }
    nowMs += 1
    const next = made(await create(asked))
    expect(next.id).not.toBe(made(first).id)
    expect(next.secret).not.toBe(made(first).secret)
    expect((await listSurfaces(next.secret)).status).toBe(200)
    expect((await listSurfaces(made(first).secret)).status).toBe(401)
  })

  it('are created once when the same request arrives many times at once', async () => {
    const asked = request({ name: 'requested by many at once' })
    const answers = await Promise.all(Array.from({ length: 24 }, () => create(asked)))
    const keys = answers.map(made)
    expect(new Set(keys.map(key => JSON.stringify(key))).size).toBe(1)
    const page = await call(api.baseUrl, `GET ${path}`, { bearer: token })
    const { apiKeys } = workspaceKeysPageSchema.parse(page.body)
    expect(apiKeys.filter(({ name }) => name === asked.name)).toHaveLength(1)
  })

  it('conflict when a request is repeated with another name, scope set or expiry, or after the key was revoked', async () => {
    const asked = request()
    const key = made(await create(asked))
    expectConflict(await create({ ...asked, name: 'other' }), 'was used with another name')
    expectConflict(await create({ ...asked, scopes: asked.scopes.slice(1) }), 'was used with other scopes')
    const more = [...asked.scopes, 'org:surfaces:delete']
    expectConflict(await create({ ...asked, scopes: more }), 'was used with other scopes')
    expectConflict(
      await create({ ...asked, secondsUntilExpiration: 5 }),
      'was used with another secondsUntilExpiration',
    )
    expect((await revoke(key.id)).status).toBe(200)
    expectConflict(await create(asked), 'belongs to a key that is revoked')
  })

  it('have idempotency keys that belong to one user in one workspace', async () => {
    const other = newId('ws')
    const otherSlug = other.replace('_', '-')
    await putWorkspace(services.redisUrl, { id: other, slug: otherSlug })
    await directory.putMember({ version: 1, workspaceId, userId: 'user_2', permissions: [...PERMISSIONS] })
    const asked = request()
    const bearers: [string, string][] = [
      [path, token],
      [path, await signToken({ org: slug, exp: FAR_EXPIRY, sub: 'user_2' })],
      [`/v3/workspaces/${otherSlug}/api-keys`, await signToken({ org: otherSlug, exp: FAR_EXPIRY })],
    ]
    const secrets = new Set<string>()
    for (const [at, bearer] of bearers) {
      secrets.add(made(await call(api.baseUrl, `POST ${at}`, { bearer, body: asked })).secret)
    }
    expect(secrets.size).toBe(3)
  })

  it('are not returned with a wrong secret after a change of the pepper, and continue to work', async () => {
    const asked = request()
    const key = made(await create(asked))
    const changed = await startApi(services, 'default', { KEY_PEPPER: 'q'.repeat(32) }, () => nowMs)
    try {
      const repeat = await call(changed.baseUrl, `POST ${path}`, { bearer: token, body: asked })
      expectConflict(repeat, 'was used before the KEY_PEPPER of the server changed')
      expect((await call(changed.baseUrl, 'GET /v3/surfaces', { bearer: key.secret })).status).toBe(200)
    } finally {
      await changed.stop()
    }
  })

  it('grant only permissions of their creator, and the refusal names the others', async () => {
    const permissions: Permission[] = ['org:workspace_auth:write', 'org:surfaces:read']
    await directory.putMember({ version: 1, workspaceId, userId: 'user_3', permissions })
    const bearer = await signToken({ org: slug, exp: FAR_EXPIRY, sub: 'user_3' })
    const scopes = ['org:surfaces:read', 'org:surfaces:write', 'org:surfaces:write']
    expect(await create(request({ scopes }), bearer)).toMatchObject({
      status: 403,
      body: {
        code: 'PERMISSION_DENIED',
        message: 'scopes must be permissions that you have yourself; you do not have org:surfaces:write',
      },
    })
    expect((await create(request({ scopes: permissions }), bearer)).status).toBe(201)

    await directory.putMember({ version: 1, workspaceId, userId: 'user_3', permissions: ['org:surfaces:read'] })
    expect(await create(request({ scopes: ['org:surfaces:read'] }), bearer)).toMatchObject({
      status: 403,
      body: { code: 'PERMISSION_DENIED', message: 'the permission org:workspace_auth:write is required' },
    })
  })

  it('cannot create, list or revoke workspace keys', async () => {
    const key = made(await create(request({ scopes: [...PERMISSIONS] })))
    const answers = [
      await create(request(), key.secret),
      await revoke(key.id, key.secret),
      await call(api.baseUrl, `GET ${path}`, { bearer: key.secret }),
    ]
    for (const answer of answers) {
      const message = 'this operation takes the token of a signed-in user; a workspace API key (wk_…) was sent'
      expect(answer).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING', message } })
    }
  })

  it('stop working at once and for good when revoked, by whom and however often', async () => {
    const key = made(await create(request()))
    expect((await listSurfaces(key.secret)).status).toBe(200)
    for (let i = 0; i < 2; i++) {
      expect(await revoke(key.id)).toMatchObject({ status: 200, body: { ok: true } })
      expect(await listSurfaces(key.secret)).toMatchObject({
        status: 401,
        body: { code: 'AUTH_MISSING', message: 'the workspace key is revoked' },
      })
    }
    for (const id of [newId('key'), 'key_', 'key_UPPER', '*', '..%2F..', 'x'.repeat(500)]) {
      const unknown = await revoke(id)
      expect(unknown).toMatchObject({ status: 404, body: { code: 'NOT_FOUND', message: 'there is no such API key' } })
    }
  })

  it('stop working at the millisecond of their expiry', async () => {
    const key = made(await create(request({ secondsUntilExpiration: 1 })))
    nowMs += 999
    expect((await listSurfaces(key.secret)).status).toBe(200)
    nowMs += 1
    expect(await listSurfaces(key.secret)).toMatchObject({
      status: 401,
      body: { code: 'AUTH_MISSING', message: 'the workspace key is expired' },
    })
  })

  it('are listed page by page, the newest first, without their secrets', async () => {
    const id = newId('ws')
    const own = id.replace('_', '-')
    await putWorkspace(services.redisUrl, { id, slug: own })
    const bearer = await signToken({ org: own, exp: FAR_EXPIRY })
    const at = `/v3/workspaces/${own}/api-keys`
    const made5: string[] = []
    for (let i = 0; i < 5; i++) {
      nowMs += i % 2
      const body = request({ name: `key ${i}` })
      made5.push(made(await call(api.baseUrl, `POST ${at}`, { bearer, body })).id)
    }
    const listed: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const answer = await call(api.baseUrl, `GET ${at}?limit=2${query}`, { bearer })
      expect(answer.status).toBe(200)
      const page = workspaceKeysPageSchema.parse(answer.body)
      for (const key of page.apiKeys) {
        expect(key).toMatchObject({
          createdBy: { userId: 'user_1', apiKeyId: null },
          revokedAt: null,
          prefix: expect.stringMatching(/^wk_.{3}$/),
        })
        listed.push(key.id)
      }
      cursor = page.nextCursor
    }
    expect(new Set(listed)).toEqual(new Set(made5))
    expect(listed[0]).toBe(made5.slice(3).sort().at(-1))
    expect(listed).toHaveLength(5)
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'cursor=WzEsIngiXQ']) {
      const answer = await call(api.baseUrl, `GET ${at}?${query}`, { bearer })
      expect(answer).toMatchObject({ status: 400, body: { code: 'REQUEST_INVALID', service: 'operation' } })
    }
  })

  it.each<[string, unknown, string]>([
    ['no object', [], 'the body must be a JSON object'],
    ['no JSON', '{', 'the body is not valid JSON'],
    ['an idempotency key that is not a UUID', { idempotencyKey: 'again' }, 'idempotencyKey must be a UUID'],
    ['an empty name', { name: '' }, 'name must have 1 to 120 characters'],
    ['a long name', { name: 'n'.repeat(121) }, 'name must have 1 to 120 characters'],
    ['no scopes', { scopes: undefined }, 'scopes is required'],
    ['scopes that are no list', { scopes: 'org:surfaces:read' }, 'scopes must be an array of permissions'],
    ['no scope', { scopes: [] }, 'scopes must have at least one of org:workspace_auth:write, org:members:read'],
    ['a scope that is not a text', { scopes: [1] }, 'scopes.0 must be one of org:workspace_auth:write'],
    [
      'an unknown scope',
      { scopes: ['org:surfaces:read', 'org:surface:read'] },
      'scopes.1 must be one of org:workspace',
    ],
    ['no expiry', { secondsUntilExpiration: undefined }, 'secondsUntilExpiration is required: seconds, or null'],
    ['an expiry of no time', { secondsUntilExpiration: 0 }, 'secondsUntilExpiration must be a whole number'],
    ['half a second', { secondsUntilExpiration: 0.5 }, 'secondsUntilExpiration must be a whole number'],
    ['an expiry beyond all dates', { secondsUntilExpiration: 1e15 }, 'secondsUntilExpiration must be a whole number'],
    ['an expiry that is text', { secondsUntilExpiration: '60' }, 'secondsUntilExpiration must be a whole number'],
    ['a field too many', { expiresAt: 'tomorrow' }, 'the body must not have the field "expiresAt"'],
  ])('are refused for a request with %s', async (_, change, message) => {
    const isWhole = typeof change === 'string' || Array.isArray(change)
    expect(await create(isWhole ? change : request(change as object))).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: expect.stringContaining(message), service: 'operation' },
    })
  })

  it('need neither a name nor an idempotency key', async () => {
    const { scopes, secondsUntilExpiration } = request()
    const keys = [await create({ scopes, secondsUntilExpiration }), await create({ scopes, secondsUntilExpiration })]
    expect(keys.map(answer => made(answer).name)).toEqual(['API key', 'API key'])
    expect(made(keys[0] as Answer).id).not.toBe(made(keys[1] as Answer).id)
  })

  it('accept names in any script and idempotency keys of any UUID version', async () => {
    const odd = request({ name: '🔑'.repeat(120), idempotencyKey: '11111111-1111-1111-1111-111111111111' })
    const key = made(await create(odd))
    expect(key.name).toBe(odd.name)
    expect(made(await create(odd))).toEqual(key)
  })

  it('accept only JSON of at most 256 KiB, after the credential is checked', async () => {
    const send = (headers: Record<string, string>, body: string, bearer: string | undefined = token) =>
      call(api.baseUrl, `POST ${path}`, { bearer, body, headers })
    const body = JSON.stringify(request())
    expect((await send({ 'content-type': 'text/plain' }, body)).status).toBe(415)
    expect((await send({ 'content-encoding': 'gzip' }, body)).status).toBe(415)
    expect((await send({ 'content-type': 'Application/JSON; charset=utf-8' }, body)).status).toBe(201)
    const large = `${body}${' '.repeat(256 * KIB)}`
    expect(await send({}, large)).toMatchObject({
      status: 413,
      body: { code: 'REQUEST_INVALID', message: 'the body is over the limit of 256 KiB', service: 'operation' },
    })
    expect((await send({ 'content-type': 'text/plain' }, large, 'x')).status).toBe(401)
    expect((await send({}, '{', await signToken({ org: 'elsewhere', exp: FAR_EXPIRY }))).status).toBe(404)
  })
})
