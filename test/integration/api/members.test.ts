import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { changesPageSchema } from '../../../schemas/http/changes.ts'
import { membersPageSchema } from '../../../schemas/http/members.ts'
import type { Change } from '../../../schemas/records/change.ts'
import { PERMISSIONS, type WorkspaceKey } from '../../../schemas/records/directory.ts'
import { CHANGES_KEPT, importChanges } from '../../../shared/directory/changes/change-log.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { commitIf } from '../../../shared/directory/transaction.ts'
import { writeWorkspaceKey } from '../../../shared/directory/writes.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/11`
/** Members and changes are in Redis, and nothing is read from ClickHouse. */
const DATABASE = 'default'

describe('members and the log of changes', () => {
  let redis: Redis
  let api: TestApi

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    api = await startApi({ ...services, redisUrl }, DATABASE)
  })
  afterAll(async () => {
    await api?.stop()
    redis?.disconnect()
  })

  it('lets an invited identity sign in with its permissions, until it is removed', async () => {
    const owner = await workspace('invited')
    const userId = 'auth0|abc def/ü'
    const request = { userId, permissions: ['org:members:read'], name: 'Ben', email: 'ben@example.com' }
    const added = await owner('POST /v3/members', request)
    expect(added).toMatchObject({ status: 201, body: { member: { id: userId, name: 'Ben' } } })
    expect((await owner('POST /v3/members', request)).body).toEqual(added.body)
    expect(await owner('POST /v3/members', { ...request, permissions: [] })).toMatchObject({ status: 400 })

    const ben = caller('invited', userId)
    const { members } = membersPageSchema.parse((await ben('GET /v3/members')).body)
    expect(members).toEqual(expect.arrayContaining([{ id: 'owner', permissions: [...PERMISSIONS] }]))
    expect((await ben('POST /v3/members', request)).status).toBe(403)
    const path = `/v3/members/${encodeURIComponent(userId)}`
    expect(await owner(`PATCH ${path}`, { permissions: ['org:surfaces:read'] })).toMatchObject({ status: 200 })
    expect((await ben('GET /v3/members')).status).toBe(403)
    expect((await ben('GET /v3/surfaces')).status).toBe(200)
    expect((await owner(`DELETE ${path}`)).status).toBe(200)
    expect((await ben('GET /v3/surfaces')).status).toBe(404)
    expect((await owner(`DELETE ${path}`)).status).toBe(404)
  })

  it('lets members give and take only permissions that they have', async () => {
    const owner = await workspace('lattice')
    const clerkPermissions = ['org:members:read', 'org:members:write']
    await owner('POST /v3/members', { userId: 'clerk', permissions: clerkPermissions })
    const clerk = caller('lattice', 'clerk')
    const refused = {
      status: 403,
      body: { code: 'PERMISSION_DENIED', message: expect.stringContaining('org:findings:read') },
    }
    const permissions = ['org:members:read', 'org:findings:read']
    expect(await clerk('POST /v3/members', { userId: 'friend', permissions })).toMatchObject(refused)
    expect(
      await clerk('PATCH /v3/members/clerk', { permissions: [...clerkPermissions, ...permissions] }),
    ).toMatchObject(refused)
    expect(await clerk('PATCH /v3/members/owner', { permissions: [] })).toMatchObject(refused)
    expect(await clerk('DELETE /v3/members/owner')).toMatchObject(refused)
    expect((await clerk('POST /v3/members', { userId: 'friend', permissions: ['org:members:read'] })).status).toBe(201)
  })

  it('takes no permission from a member who has one that the caller lacks', async () => {
    const owner = await workspace('lesser')
    const lesser = ['org:members:read', 'org:members:write', 'org:surfaces:read']
    await owner('POST /v3/members', { userId: 'lesser', permissions: lesser })
    const manager = caller('lesser', 'lesser')
    const withoutManaging = PERMISSIONS.filter(permission => permission !== 'org:members:write')
    expect(await manager('PATCH /v3/members/owner', { permissions: withoutManaging })).toMatchObject({
      status: 403,
      body: { code: 'PERMISSION_DENIED', message: expect.stringContaining('org:findings:write') },
    })
    expect((await owner('GET /v3/members')).status).toBe(200)
    await owner('POST /v3/members', { userId: 'equal', permissions: lesser.slice(1) })
    expect((await manager('PATCH /v3/members/equal', { permissions: ['org:surfaces:read'] })).status).toBe(200)
    expect((await manager('PATCH /v3/members/lesser', { permissions: ['org:surfaces:read'] })).status).toBe(200)
  })

  describe('the keys of a removed member', () => {
    type Made = {
      apiKey: { id: string; secret: string }
      secretKey: { id: string; secret: string }
      publicKeyId: string
    }

    /** Adds a member who makes an API key, a secret key and a public key. */
    async function makeKeys(slug: string, owner: ReturnType<typeof caller>): Promise<Made> {
      const permissions = ['org:workspace_auth:write', 'org:surfaces:read', 'org:surfaces:write']
      expect((await owner('POST /v3/members', { userId: 'ben', permissions })).status).toBe(201)
      const ben = caller(slug, 'ben')
      const { surface } = (await ben('POST /v3/surfaces', { name: 'Shop' })).body as { surface: { id: string } }
      const make = async (body: object) =>
        ((await ben(`POST /v3/surfaces/${surface.id}/keys`, body)).body as { key: { id: string; secret: string } }).key
      const scopes = ['org:surfaces:read', 'org:surfaces:write']
      const asked = { idempotencyKey: randomUUID(), name: 'deploy', secondsUntilExpiration: null, scopes }
      const { apiKey } = (await ben(`POST /v3/workspaces/${slug}/api-keys`, asked)).body as Pick<Made, 'apiKey'>
      const secretKey = await make({ kind: 'secret', scopes: ['release:write'] })
      return { apiKey, secretKey, publicKeyId: (await make({ kind: 'public' })).id }
    }
    const works = async (secret: string) => (await call(api.baseUrl, 'GET /v3/surfaces', { bearer: secret })).status
    /** The state in which the edge finds a secret key. */
    const stateOf = async (secret: string) => {
      const key = await createDirectory(redis).effectiveSurfaceKey(digestOf(secret))
      return { isRevoked: key?.revokedAt !== null, by: key?.createdBy?.userId }
    }
    const listed = async (owner: ReturnType<typeof caller>, slug: string) =>
      ((await owner(`GET /v3/workspaces/${slug}/api-keys`)).body as { apiKeys: { createdBy: { userId: string } }[] })
        .apiKeys

    it('pass to the remover, with no more than they had, and are listed', async () => {
      const owner = await workspace('passed')
      const { apiKey, secretKey, publicKeyId } = await makeKeys('passed', owner)
      // The key has a scope that its maker has lost.
      await owner('PATCH /v3/members/ben', { permissions: ['org:workspace_auth:write', 'org:surfaces:read'] })
      const removed = await owner('DELETE /v3/members/ben')
      expect(removed).toMatchObject({ status: 200, body: { ok: true } })
      const { keys } = removed.body as { keys: { kind: string; id: string }[] }
      expect(keys.map(({ kind, id }) => [kind, id])).toEqual([
        ['api', apiKey.id],
        ['secret', secretKey.id],
      ])
      expect(await works(apiKey.secret)).toBe(200)
      const write = await call(api.baseUrl, 'POST /v3/surfaces', { bearer: apiKey.secret, body: { name: 'Other' } })
      expect(write.status).toBe(403)
      expect(await stateOf(secretKey.secret)).toEqual({ isRevoked: false, by: 'owner' })
      expect((await listed(owner, 'passed')).map(({ createdBy }) => createdBy.userId)).toEqual(['owner'])
      const actions = (await changesOf(owner)).map(({ action, subject }) => [action, subject])
      expect(actions).toEqual(
        expect.arrayContaining([
          ['api-key.passed', apiKey.id],
          ['surface-key.passed', secretKey.id],
        ]),
      )
      expect(JSON.stringify(actions)).not.toContain(`passed","${publicKeyId}`)
    })

    it('are revoked where the remover wants it, or removes itself, and public keys stay', async () => {
      for (const [slug, remove] of [
        ['revoked', (owner: ReturnType<typeof caller>) => owner('DELETE /v3/members/ben?keys=revoke')],
        ['left', () => caller('left', 'ben')('DELETE /v3/members/ben')],
      ] as const) {
        const owner = await workspace(slug)
        const { apiKey, secretKey, publicKeyId } = await makeKeys(slug, owner)
        if (slug === 'left') await owner('PATCH /v3/members/ben', { permissions: [...PERMISSIONS] })
        expect(await remove(owner)).toMatchObject({ status: 200 })
        expect(await works(apiKey.secret)).toBe(401)
        expect((await stateOf(secretKey.secret)).isRevoked).toBe(true)
        expect(JSON.stringify(await changesOf(owner))).not.toContain(`revoked","subject":"${publicKeyId}`)
      }
      expect((await (await workspace('unknown'))('DELETE /v3/members/ben?keys=keep')).status).toBe(400)
    })

    it('are no more than the member had: a key of an API key that may make none does not work again', async () => {
      const owner = await workspace('suspended')
      const { apiKey } = await makeKeys('suspended', owner)
      const made = await call(api.baseUrl, 'POST /v3/surfaces', { bearer: apiKey.secret, body: { name: 'Other' } })
      const { surface } = made.body as { surface: { id: string } }
      const body = { kind: 'secret', scopes: ['release:write'] }
      const answer = await call(api.baseUrl, `POST /v3/surfaces/${surface.id}/keys`, { bearer: apiKey.secret, body })
      const { secret } = (answer.body as { key: { secret: string } }).key
      expect((await stateOf(secret)).isRevoked).toBe(false)
      await owner('PATCH /v3/members/ben', { permissions: ['org:workspace_auth:write', 'org:surfaces:read'] })
      expect((await stateOf(secret)).isRevoked).toBe(true)
      expect((await owner('DELETE /v3/members/ben')).status).toBe(200)
      expect((await stateOf(secret)).isRevoked).toBe(true)
    })

    it('are all decided on, however many they are', async () => {
      const owner = await workspace('many')
      const { apiKey } = await makeKeys('many', owner)
      const directory = createDirectory(redis)
      const key = (await directory.workspaceKey('ws_many', apiKey.id)) as WorkspaceKey
      const secrets = Array.from({ length: 1_100 }, () => generateKey('workspace'))
      for (const [i, secret] of secrets.entries()) {
        await directory.createWorkspaceKey({ ...key, id: `key_many${i}`, digest: digestOf(secret) })
      }
      const { body } = await owner('DELETE /v3/members/ben?keys=revoke')
      expect((body as { keys: object[] }).keys).toHaveLength(1_102)
      for (const secret of [secrets[0], secrets.at(-1)]) expect(await works(secret ?? '')).toBe(401)
    })

    it('do not come back with the person, also when one was made while its maker was removed', async () => {
      const owner = await workspace('back')
      const { apiKey } = await makeKeys('back', owner)
      const directory = createDirectory(redis)
      const key = await directory.workspaceKey('ws_back', apiKey.id)
      expect((await owner('DELETE /v3/members/ben?keys=revoke')).status).toBe(200)
      const secret = generateKey('workspace')
      const late = { ...key, id: 'key_late', digest: digestOf(secret), createdBy: 'ben', revokedAt: null }
      const author = { by: { userId: 'ben', apiKeyId: null }, now: Date.now() }
      expect(await directory.createWorkspaceKey(late as WorkspaceKey, author)).toBe('no_member')
      // As an import stores it, for example.
      await commitIf(redis, { guards: [], commands: writeWorkspaceKey(late as WorkspaceKey).commands })
      expect(await works(secret)).toBe(403)
      expect((await owner('POST /v3/members', { userId: 'ben', permissions: [...PERMISSIONS] })).status).toBe(201)
      expect([await works(secret), await works(apiKey.secret)]).toEqual([401, 401])
    })
  })

  it('keeps a member who can change members, also when two remove each other at once', async () => {
    const owner = await workspace('last')
    const last = { status: 400, body: { message: expect.stringContaining('org:members:write') } }
    expect(await owner('DELETE /v3/members/owner')).toMatchObject(last)
    expect(await owner('PATCH /v3/members/owner', { permissions: ['org:members:read'] })).toMatchObject(last)
    for (let round = 0; round < 5; round++) {
      const other = `other${round}`
      expect((await owner('POST /v3/members', { userId: other, permissions: PERMISSIONS })).status).toBe(201)
      await Promise.all([
        owner(`PATCH /v3/members/${other}`, { permissions: ['org:members:read'] }),
        caller('last', other)('PATCH /v3/members/owner', { permissions: ['org:members:read'] }),
      ])
      expect(await redis.scard('penstock:{directory}:workspace:ws_last:managers')).toBe(1)
      await putWorkspace(redisUrl, { id: 'ws_last', slug: 'last', userId: other, permissions: [] })
      await putWorkspace(redisUrl, { id: 'ws_last', slug: 'last', userId: 'owner' })
    }
  })

  it('shows each member once on pages, also when the last member of a page is removed', async () => {
    const owner = await workspace('pages')
    for (let i = 0; i < 7; i++) await owner('POST /v3/members', { userId: `user ${i}`, permissions: [] })
    const first = membersPageSchema.parse((await owner('GET /v3/members?limit=3')).body)
    const gone = first.members[2]?.id ?? ''
    if (gone !== 'owner') await owner(`DELETE /v3/members/${encodeURIComponent(gone)}`)
    const second = membersPageSchema.parse((await owner(`GET /v3/members?limit=100&cursor=${first.nextCursor}`)).body)
    const ids = [...first.members, ...second.members].map(({ id }) => id)
    expect(new Set(ids).size).toBe(8)
    expect(ids).toHaveLength(8)
  })

  it('records who created, changed and revoked what, and nothing that changed nothing', async () => {
    const owner = await workspace('logged')
    const { surface } = (await owner('POST /v3/surfaces', { name: 'Shop' })).body as { surface: { id: string } }
    const made = await owner(`POST /v3/surfaces/${surface.id}/keys`, { kind: 'public' })
    const keyId = (made.body as { key: { id: string } }).key.id
    await owner(`PATCH /v3/surfaces/${surface.id}/keys/${keyId}`, { quotas: { requestsPerSecond: 5 } })
    const keyRequest = {
      ...{ idempotencyKey: randomUUID(), name: 'deploy', secondsUntilExpiration: null },
      scopes: ['org:surfaces:read', 'org:surfaces:delete', 'org:telemetry:admin'],
    }
    const { apiKey } = (await owner('POST /v3/workspaces/logged/api-keys', keyRequest)).body as {
      apiKey: { id: string; secret: string }
    }
    await owner('POST /v3/workspaces/logged/api-keys', keyRequest)
    const automation = (operation: string, body?: unknown) =>
      call(api.baseUrl, operation, { bearer: apiKey.secret, ...(body !== undefined && { body }) })
    for (let i = 0; i < 2; i++) await automation(`DELETE /v3/surfaces/${surface.id}/keys/${keyId}`)
    const erasure = (await automation('POST /v3/erasures', { sessionId: 's' })).body as { erasure: { id: string } }
    await owner('PUT /v3/retention', { 'build-reports': 3 })
    for (let i = 0; i < 2; i++) await owner(`DELETE /v3/surfaces/${surface.id}`)
    for (let i = 0; i < 2; i++) await owner(`DELETE /v3/workspaces/logged/api-keys/${apiKey.id}`)

    const byOwner = { userId: 'owner', apiKeyId: null }
    const byKey = { userId: 'owner', apiKeyId: apiKey.id }
    const changes = await changesOf(owner)
    expect(changes.map(({ id: _, createdAt: __, ...change }) => change)).toEqual(
      expect.arrayContaining([
        { by: byOwner, action: 'surface.created', subject: surface.id, name: 'Shop' },
        { by: byOwner, action: 'surface-key.created', subject: keyId },
        { by: byOwner, action: 'surface-key.changed', subject: keyId },
        { by: byOwner, action: 'api-key.created', subject: apiKey.id, name: 'deploy', permissions: keyRequest.scopes },
        { by: byKey, action: 'surface-key.revoked', subject: keyId },
        { by: byKey, action: 'erasure.created', subject: erasure.erasure.id },
        { by: byOwner, action: 'retention.changed', subject: '' },
        { by: byOwner, action: 'surface.deleted', subject: surface.id },
        { by: byOwner, action: 'api-key.revoked', subject: apiKey.id },
      ]),
    )
    expect(changes).toHaveLength(9)
    expect(JSON.stringify(changes)).not.toContain(apiKey.secret)
  })

  it('keeps a bounded number of changes, whose pages show each once', async () => {
    const owner = await workspace('bounded')
    const createdAt = new Date().toISOString()
    const old = Array.from(
      { length: CHANGES_KEPT },
      (_, i): Change => ({
        id: `chg_${i.toString(16).padStart(20, '0')}`,
        createdAt: i < CHANGES_KEPT / 2 ? '2026-01-01T00:00:00.000Z' : createdAt,
        ...{ by: null, action: 'surface.deleted', subject: 'srf_1' },
      }),
    )
    for (let at = 0; at < old.length; at += 500) {
      await commitIf(redis, { guards: [], commands: importChanges('ws_bounded', old.slice(at, at + 500)) })
    }
    await owner('POST /v3/surfaces', { name: 'Shop' })
    expect(await redis.zcard('penstock:{directory}:workspace:ws_bounded:changes')).toBe(CHANGES_KEPT)
    const seen = await changesOf(owner, 3)
    expect(seen).toHaveLength(300)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(300)
    expect(seen[0]).toMatchObject({ action: 'surface.created' })
  })

  /** Creates a workspace and returns a function that sends the requests of its owner. */
  async function workspace(slug: string) {
    await putWorkspace(redisUrl, { id: `ws_${slug}`, slug, userId: 'owner' })
    return caller(slug, 'owner')
  }

  function caller(slug: string, sub: string) {
    return async (operation: string, body?: unknown) =>
      call(api.baseUrl, operation, {
        bearer: await signToken({ org: slug, sub }),
        ...(body !== undefined && { body }),
      })
  }

  /** Follows the cursors of the log over at most this number of pages. */
  async function changesOf(owner: Awaited<ReturnType<typeof workspace>>, pages = 1) {
    const seen: Change[] = []
    let cursor = ''
    for (let page = 0; page < pages; page++) {
      const { changes, nextCursor } = changesPageSchema.parse((await owner(`GET /v3/changes?limit=100${cursor}`)).body)
      seen.push(...changes)
      if (nextCursor === null) break
      cursor = `&cursor=${nextCursor}`
    }
    return seen
  }
})
