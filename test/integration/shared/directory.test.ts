import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SurfaceKey, WorkspaceKey } from '../../../schemas/records/directory.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import type { CreationRefused } from '../../../shared/directory/creations.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { newCreation } from '../../../shared/directory/new-creation.ts'
import { CREDENTIAL_CHANGES_CHANNEL, DirectoryRecordError, directoryKeys } from '../../../shared/directory/record.ts'
import { createReleaseStore, RELEASES_MAX, releaseKeys } from '../../../shared/directory/release-store.ts'
import { SURFACE_KEYS_MAX, WORKSPACE_SURFACE_KEYS_MAX } from '../../../shared/directory/surface-keys.ts'
import { DELETED_SURFACE_KEYS_KEPT, DELETED_SURFACES_KEPT } from '../../../shared/directory/surfaces.ts'
import { WORKSPACE_KEYS_MAX } from '../../../shared/directory/workspace-keys.ts'
import { writeSurfaceKey } from '../../../shared/directory/writes.ts'
import { keyState } from '../../../shared/ids/key-state.ts'
import { collect } from '../../support/oracles/collect.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'
import { aSurface, aSurfaceKey, aWorkspace, aWorkspaceKey } from '../../support/workspaces/directory-records.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

/** A database of Redis, which is emptied before each test. */
const DATABASE = 5
const AT = '2026-08-01T12:00:00.000Z'
const NOW = Date.parse('2026-08-01T12:30:00.000Z')
const NOW_TEXT = new Date(NOW).toISOString()

let redis: Redis
let store: Directory
/** Digests of the keys whose changes were published, and the messages themselves. */
let published: string[]
let messages: string[]
let subscriber: Redis

beforeAll(async () => {
  const { redisUrl } = sharedServices()
  redis = new Redis(`${redisUrl}/${DATABASE}`)
  subscriber = new Redis(redisUrl)
  await subscriber.subscribe(CREDENTIAL_CHANGES_CHANNEL)
  subscriber.on('message', (_, digests) => {
    messages.push(digests)
    published.push(...digests.split(' '))
  })
  store = createDirectory(redis)
})
afterAll(() => {
  redis?.disconnect()
  subscriber?.disconnect()
})
beforeEach(async () => {
  published = []
  messages = []
  await redis.flushdb()
})

const untilPublished = (digests: readonly string[]) =>
  until('the changes are published', () => digests.every(digest => published.includes(digest)), { deadlineMs: 2_000 })

describe('users', () => {
  it('are stored under the id of their provider, whatever it contains, and listed once by id', async () => {
    const ids = ['auth0|5', 'a:b', 'ünï', ' ', 'x'.repeat(200), 'a']
    for (const id of [...ids, 'a']) {
      await store.putUser({ version: 1, id, email: null, name: `the user ${id}`, createdAt: AT })
    }
    expect(await store.user('a:b')).toMatchObject({ id: 'a:b', name: 'the user a:b' })
    expect(await store.user('b')).toBeUndefined()
    const listed = (await collect(store.users())).map(user => user.id)
    expect(listed).toEqual([...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
  })

  it('are never confused because of characters that a key of Redis cannot contain', async () => {
    const id = 'user-\ufffd'
    await store.putUser({ version: 1, id, email: null, name: null, createdAt: AT })
    await store.putMember({ version: 1, workspaceId: 'ws_1', userId: id, permissions: [] })
    expect(await store.user(id)).toBeDefined()
    expect(await store.user('user-\ud800')).toBeUndefined()
    expect(await store.member('ws_1', 'user-\ud800')).toBeUndefined()
    for (const bad of ['', 'a\n', 'a\u0000', 'x'.repeat(201), '\ud800']) {
      await expect(store.putUser({ version: 1, id: bad, email: null, name: null, createdAt: AT })).rejects.toThrow()
    }
  })

  it('are all listed when they fill more than a page', async () => {
    const ids = Array.from({ length: 1_203 }, (_, i) => `user_${String(i).padStart(5, '0')}`)
    await Promise.all(ids.map(id => store.putUser({ version: 1, id, email: null, name: null, createdAt: AT })))
    expect((await collect(store.users())).map(user => user.id)).toEqual(ids)
  })
})

describe('workspaces', () => {
  it('have a unique slug, and release it when they take another', async () => {
    const first = aWorkspace({ slug: 'acme' })
    const second = aWorkspace({ slug: 'other' })
    expect(await store.putWorkspace(first)).toBe('stored')
    expect(await store.putWorkspace(second)).toBe('stored')
    expect(await store.putWorkspace({ ...second, slug: 'acme' })).toBe('slug_taken')
    expect(await store.workspaceBySlug('acme')).toEqual(first)
    expect(await store.workspaceById(second.id)).toEqual(second)

    expect(await store.putWorkspace({ ...first, slug: 'acme-2' })).toBe('stored')
    expect(await store.workspaceBySlug('acme')).toBeUndefined()
    expect(await store.putWorkspace({ ...second, slug: 'acme' })).toBe('stored')
    expect((await collect(store.workspaces())).map(({ slug }) => slug).sort()).toEqual(['acme', 'acme-2'])
  })

  it('give a slug to one of many that request it at once', async () => {
    const workspaces = Array.from({ length: 30 }, () => aWorkspace({ slug: 'wanted' }))
    const outcomes = await Promise.all(workspaces.map(workspace => store.putWorkspace(workspace)))
    expect(outcomes.filter(outcome => outcome === 'stored')).toHaveLength(1)
    expect(await store.workspaceBySlug('wanted')).toEqual(workspaces[outcomes.indexOf('stored')])
    expect(await collect(store.workspaces())).toHaveLength(1)
  })

  it('have members that belong only to this workspace', async () => {
    await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'b', permissions: ['org:surfaces:read'] })
    await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'a', permissions: [] })
    await store.putMember({ version: 1, workspaceId: 'ws_12', userId: 'c', permissions: [] })
    expect((await collect(store.members('ws_1'))).map(member => member.userId)).toEqual(['a', 'b'])
    expect(await store.removeMember('ws_1', 'b')).toBe('removed')
    expect(await store.removeMember('ws_1', 'b')).toBe('absent')
    expect(await store.member('ws_1', 'b')).toBeUndefined()
    expect((await collect(store.members('ws_1'))).map(member => member.userId)).toEqual(['a'])
    expect(await store.removeMember('ws_1', 'c')).toBe('absent')
  })
})

describe('surfaces', () => {
  it('are all listed page by page, the newest first, whatever their times (list-newest.lua)', async () => {
    const property = fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      async (times, limit) => {
        await redis.flushdb()
        const surfaces = times.map(ms => aSurface({ createdAt: new Date(Date.parse(AT) + ms).toISOString() }))
        for (const surface of surfaces) await store.putSurface(surface)
        await store.putSurface(aSurface({ workspaceId: 'ws_12' }))
        const listed: string[] = []
        let after: { createdAtMs: number; id: string } | undefined
        for (;;) {
          const page = await store.surfaces('ws_1', { limit, after })
          listed.push(...page.map(({ id }) => id))
          const last = page.at(-1)
          if (page.length < limit || !last) break
          after = { createdAtMs: Date.parse(last.createdAt), id: last.id }
        }
        const newestFirst = surfaces
          .sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt) || (a.id < b.id ? 1 : -1))
          .map(({ id }) => id)
        expect(listed).toEqual(newestFirst)
      },
    )
    await fc.assert(property, { numRuns: 40 })
  })

  it('fill a page when an index still names deleted ones', async () => {
    const surfaces = [1, 2, 3, 4].map(ms => aSurface({ createdAt: new Date(ms).toISOString() }))
    for (const surface of surfaces) await store.putSurface(surface)
    await redis.del(
      directoryKeys.surface('ws_1', surfaces[3]?.id ?? ''),
      directoryKeys.surface('ws_1', surfaces[2]?.id ?? ''),
    )
    expect(await store.surfaces('ws_1', { limit: 2 })).toEqual([surfaces[1], surfaces[0]])
  })

  it('delete their keys at once, and publish that to every edge', async () => {
    const surface = aSurface()
    await store.putSurface(surface)
    const keys = [1, 2, 3].map(() => aSurfaceKey({ surfaceId: surface.id }))
    const other = aSurfaceKey({ surfaceId: 'srf_other' })
    for (const key of keys) expect(await store.createSurfaceKey(key)).toBe('created')
    await store.putSurfaceKey(other)
    const [first] = keys
    if (!first) throw new Error('no key')
    await store.revokeSurfaceKey('ws_1', surface.id, first.id, NOW - 1_000)
    await untilPublished(keys.map(({ digest }) => digest))
    published = []
    messages = []

    expect(await store.deleteSurface('ws_12', surface.id, NOW)).toBe('absent')
    expect(await store.deleteSurface('ws_1', surface.id, NOW)).toBe('deleted')
    expect(await store.deleteSurface('ws_1', surface.id, NOW)).toBe('absent')
    await untilPublished(keys.slice(1).map(({ digest }) => digest))
    // One message for all of them, however many there are.
    const message = messages.find(text => text.includes(keys[1]?.digest ?? ''))
    expect(message?.split(' ').sort()).toEqual(
      keys
        .slice(1)
        .map(({ digest }) => digest)
        .sort(),
    )
    const revokedAt = await Promise.all(
      [...keys, other].map(async ({ digest }) => (await store.surfaceKeyByDigest(digest))?.revokedAt),
    )
    expect(revokedAt).toEqual([new Date(NOW - 1_000).toISOString(), NOW_TEXT, NOW_TEXT, null])
    expect(await store.surface('ws_1', surface.id)).toBeUndefined()
    expect(await store.surfaces('ws_1', { limit: 10 })).toEqual([])
    expect(await store.surfaceIds('ws_1')).toEqual([surface.id, 'srf_other'].sort())
    expect(await store.surfaceKeys('ws_1', surface.id)).toHaveLength(3)
    expect(await store.createSurfaceKey(aSurfaceKey({ surfaceId: surface.id }))).toBe('no_surface')
  })

  it('leave no working key, even one that is created during the deletion', async () => {
    for (let round = 0; round < 30; round++) {
      const surface = aSurface()
      await store.putSurface(surface)
      // Each begins a round trip later than the one before, so that some fall between the reads and the transaction of the
      // deletion.
      const create = async (turns: number) => {
        for (let turn = 0; turn < turns; turn++) await redis.ping()
        return store.createSurfaceKey(aSurfaceKey({ surfaceId: surface.id }))
      }
      const made = [0, 1, 2, 3, 4, 5].map(create)
      const [outcome, ...created] = await Promise.all([store.deleteSurface('ws_1', surface.id, NOW), ...made])
      expect(outcome).toBe('deleted')
      const stored = await store.surfaceKeys('ws_1', surface.id)
      expect(stored.filter(key => key.revokedAt === null)).toEqual([])
      expect(stored).toHaveLength(created.filter(answer => answer === 'created').length)
    }
  })
})

describe('keys of surfaces', () => {
  it('are found by digest and by id, and listed newest first', async () => {
    const older = aSurfaceKey()
    const newer = aSurfaceKey({ createdAt: NOW_TEXT, kind: 'secret', scopes: ['release:write'] })
    await store.putSurfaceKey(older)
    await store.putSurfaceKey(newer)
    expect(await store.surfaceKeyByDigest(older.digest)).toEqual(older)
    expect(await store.surfaceKey('ws_1', 'srf_1', newer.id)).toEqual(newer)
    expect(await store.surfaceKey('ws_1', 'srf_2', newer.id)).toBeUndefined()
    expect(await store.surfaceKey('ws_12', 'srf_1', newer.id)).toBeUndefined()
    expect(await store.surfaceKeys('ws_1', 'srf_1')).toEqual([newer, older])
  })

  it('are revoked once, with the time of the first revocation, which is published to every edge', async () => {
    const key = aSurfaceKey()
    await store.putSurfaceKey(key)
    await untilPublished([key.digest])
    published = []
    expect(await store.revokeSurfaceKey('ws_1', 'srf_2', key.id, NOW)).toBe('absent')
    expect(await store.revokeSurfaceKey('ws_1', 'srf_1', key.id, NOW)).toBe('revoked')
    await untilPublished([key.digest])
    expect(await store.revokeSurfaceKey('ws_1', 'srf_1', key.id, NOW + 1_000)).toBe('revoked')
    expect(await store.surfaceKeyByDigest(key.digest)).toEqual({ ...key, revokedAt: NOW_TEXT })
  })
})

describe('keys of surfaces that have ended', () => {
  /** Stores keys without a script for each, as many as a test needs. */
  async function putKeys(keys: readonly SurfaceKey[]): Promise<void> {
    const pipeline = redis.pipeline()
    for (const key of keys) for (const [name, ...words] of writeSurfaceKey(key).commands) pipeline.call(name, ...words)
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
  }
  const past = (ms: number) => new Date(NOW - ms).toISOString()

  it('make room for a new key, those that ended first first', async () => {
    const surface = aSurface()
    await store.putSurface(surface)
    const mine = { surfaceId: surface.id }
    const ended = Array.from({ length: 150 }, (_, i) => aSurfaceKey({ ...mine, revokedAt: past(1_000 + i) }))
    const expired = aSurfaceKey({ ...mine, expiresAt: past(10_000) })
    const active = Array.from({ length: SURFACE_KEYS_MAX - 151 }, () => aSurfaceKey(mine))
    await putKeys([...ended, expired, ...active])
    const next = () => store.createSurfaceKey(aSurfaceKey({ ...mine, createdAt: NOW_TEXT }))
    expect(await next()).toBe('created')
    const left = await store.surfaceKeys('ws_1', surface.id)
    expect(left).toHaveLength(SURFACE_KEYS_MAX - 99)
    expect(await store.surfaceKeyByDigest(expired.digest)).toBeUndefined()
    expect(await store.surfaceKeyByDigest(ended[0]?.digest ?? '')).toBeDefined()
    expect(await store.surfaceKeyByDigest(ended[149]?.digest ?? '')).toBeUndefined()

    await putKeys(Array.from({ length: 99 }, () => aSurfaceKey(mine)))
    expect(await next()).toBe('created')
    await putKeys(Array.from({ length: 50 }, () => aSurfaceKey(mine)))
    expect(await next()).toBe('too_many_keys')
  })

  it('make room in a workspace of many surfaces', async () => {
    const [surface, other] = [aSurface(), aSurface()]
    for (const each of [surface, other]) await store.putSurface(each)
    const ended = aSurfaceKey({ surfaceId: other.id, revokedAt: past(1) })
    await putKeys([ended])
    const members = Array.from({ length: WORKSPACE_SURFACE_KEYS_MAX - 1 }, (_, i) => ['+inf', `d${i}`]).flat()
    await redis.zadd(directoryKeys.surfaceKeyEnds('ws_1'), ...members)
    const next = () => store.createSurfaceKey(aSurfaceKey({ surfaceId: surface.id, createdAt: NOW_TEXT }))
    expect(await next()).toBe('created')
    expect(await store.surfaceKeys('ws_1', other.id)).toEqual([])
    expect(await next()).toBe('too_many_keys')
  })

  it('are forgotten with the surfaces that were deleted longest ago', async () => {
    const deleted = Array.from({ length: 12 }, () => aSurface())
    for (const [i, surface] of deleted.entries()) {
      await store.putSurface(surface)
      await store.putSurfaceKey(aSurfaceKey({ surfaceId: surface.id }))
      await store.deleteSurface('ws_1', surface.id, NOW + i)
    }
    const others = Array.from({ length: DELETED_SURFACES_KEPT - 12 }, (_, i) => `srf_x${i}`)
    await redis.zadd(directoryKeys.surfaceIds('ws_1'), ...others.flatMap(id => ['0', id]))
    await redis.zadd(directoryKeys.deletedSurfaces('ws_1'), ...others.flatMap(id => [String(NOW + 100), id]))
    expect(await store.createSurface(aSurface())).toBe('created')
    const ids = await store.surfaceIds('ws_1')
    expect(deleted.map(({ id }) => ids.includes(id))).toEqual([...Array(10).fill(false), true, true])
    expect(await store.surfaceKeys('ws_1', deleted[0]?.id ?? '')).toEqual([])
    expect(await store.surfaceKeys('ws_1', deleted[11]?.id ?? '')).toHaveLength(1)

    // An import does not write this index, which is made from the others.
    await redis.zadd(directoryKeys.surfaceIds('ws_1'), ...deleted.slice(0, 10).flatMap(({ id }) => ['0', id]))
    await redis.del(directoryKeys.deletedSurfaces('ws_1'))
    expect(await store.createSurface(aSurface())).toBe('created')
    expect(await store.surfaceIds('ws_1')).toHaveLength(DELETED_SURFACES_KEPT - 10 + 2)
  })

  it('are kept for a deleted surface, up to a limit', async () => {
    const surface = aSurface()
    await store.putSurface(surface)
    await putKeys(Array.from({ length: 300 }, () => aSurfaceKey({ surfaceId: surface.id })))
    expect(await store.deleteSurface('ws_1', surface.id, NOW)).toBe('deleted')
    const kept = await store.surfaceKeys('ws_1', surface.id)
    expect(kept).toHaveLength(DELETED_SURFACE_KEYS_KEPT)
    expect(kept.every(({ revokedAt }) => revokedAt === NOW_TEXT)).toBe(true)
    expect(await redis.zcard(directoryKeys.surfaceKeyEnds('ws_1'))).toBe(DELETED_SURFACE_KEYS_KEPT)
    expect((await redis.keys(directoryKeys.credential('*'))).length).toBe(DELETED_SURFACE_KEYS_KEPT)
  })
})

describe('keys of surfaces that an API key has made', () => {
  const permissions = ['org:surfaces:write'] as const

  async function given(change: Partial<WorkspaceKey> = {}) {
    const maker = aWorkspaceKey(change)
    await store.createWorkspaceKey(maker)
    await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'user_1', permissions: [...permissions] })
    const createdBy = { userId: 'user_1', apiKeyId: maker.id }
    const secret = aSurfaceKey({ kind: 'secret', scopes: ['release:write'], createdBy })
    const open = aSurfaceKey({ createdBy })
    for (const key of [secret, open]) await store.putSurfaceKey(key)
    const state = async () => {
      expect(await store.effectiveSurfaceKey(open.digest)).toEqual(open)
      const key = await store.effectiveSurfaceKey(secret.digest)
      const states = await store.makerStates('ws_1', [secret, open], NOW)
      return { key: key && keyState(key, NOW), maker: states.get(maker.id) }
    }
    return { maker, secret, state }
  }

  it('work while the API key is active', async () => {
    const { state, secret } = await given()
    expect(await state()).toEqual({ key: 'active', maker: 'active' })
    expect(await store.effectiveSurfaceKey(secret.digest)).toEqual(secret)
  })

  it('end with the revocation of the API key, unless they are public', async () => {
    const { state, maker } = await given()
    await store.revokeWorkspaceKey('ws_1', maker.id, NOW)
    expect(await state()).toEqual({ key: 'revoked', maker: 'revoked' })
  })

  it('end with the expiry of the API key, unless they are public', async () => {
    const { state } = await given({ expiresAt: NOW_TEXT })
    expect(await state()).toEqual({ key: 'expired', maker: 'expired' })
  })

  it('stop while the creator of the API key lacks the permission or the membership', async () => {
    const { state } = await given()
    await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'user_1', permissions: ['org:surfaces:read'] })
    expect(await state()).toEqual({ key: 'revoked', maker: 'suspended' })
    await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'user_1', permissions: [...permissions] })
    expect(await state()).toEqual({ key: 'active', maker: 'active' })
    await store.removeMember('ws_1', 'user_1')
    expect(await state()).toEqual({ key: 'revoked', maker: 'suspended' })
  })
})

describe('keys of workspaces', () => {
  it('make room for a new one when they have ended', async () => {
    const ended = aWorkspaceKey({ createdAt: new Date(NOW - HOUR_MS).toISOString() })
    await store.createWorkspaceKey(ended)
    await store.revokeWorkspaceKey('ws_1', ended.id, NOW - 1_000)
    const active = Array.from({ length: WORKSPACE_KEYS_MAX - 1 }, (_, i) => [String(i), `key_x${i}`]).flat()
    await redis.zadd(directoryKeys.workspaceKeys('ws_1'), ...active)
    const next = () => store.createWorkspaceKey(aWorkspaceKey({ createdAt: NOW_TEXT }))
    expect(await next()).toBe('created')
    expect(await store.workspaceKeyByDigest(ended.digest)).toBeUndefined()
    expect(await next()).toBe('too_many_keys')
  })

  it('are created once for one creation, however often it is sent, and it is remembered for 24 hours', async () => {
    for (const workspaceId of ['ws_1', 'ws_2']) {
      await store.putMember({ version: 1, workspaceId, userId: 'user_1', permissions: [] })
    }
    const create = async (at: number, key = 'k', workspaceId = 'ws_1') => {
      const record = aWorkspaceKey({ workspaceId, createdAt: new Date(at).toISOString() })
      const creation = newCreation({ workspaceId, of: ['createWorkspaceKey', 'user_1'], key, asked: {} }, at)
      const once = { creation, answerOf: () => ({ id: record.id }) }
      try {
        await store.createWorkspaceKey(record, { by: { userId: 'user_1', apiKeyId: null }, now: at, once })
        return record.id
      } catch (error) {
        return (error as CreationRefused).stored?.answer.id
      }
    }
    const ids = await Promise.all(Array.from({ length: 20 }, () => create(NOW)))
    const [first] = ids
    expect(ids).toEqual(Array(20).fill(first))
    expect(await store.workspaceKeys('ws_1', { limit: 10 })).toHaveLength(1)
    expect(await create(NOW, 'other')).not.toBe(first)
    expect(await create(NOW, 'k', 'ws_2')).not.toBe(first)
    expect(await create(NOW + DAY_MS - 1)).toBe(first)
    const next = await create(NOW + DAY_MS)
    expect(next).not.toBe(first)
    expect(await create(NOW + DAY_MS - 1)).toBe(next)
    const remembered = await collect(store.creations('ws_1'))
    expect(remembered.map(({ answer }) => answer.id)).toContain(next)
    for (const { id } of remembered) {
      expect(await redis.pttl(directoryKeys.creation('ws_1', id))).toBeGreaterThan(DAY_MS - 10_000)
    }
  })

  it('are found by digest and by id only in their workspace, and listed page by page, the newest first', async () => {
    const keys = [3, 2, 1].map(ms => aWorkspaceKey({ createdAt: new Date(NOW + ms).toISOString() }))
    for (const key of keys) await store.createWorkspaceKey(key)
    const [first, second, third] = keys
    if (!first || !second || !third) throw new Error('no keys')
    expect(await store.workspaceKeyByDigest(first.digest)).toEqual(first)
    expect(await store.workspaceKey('ws_1', second.id)).toEqual(second)
    expect(await store.workspaceKey('ws_2', second.id)).toBeUndefined()
    expect(await store.workspaceKeys('ws_1', { limit: 2 })).toEqual([first, second])
    const after = { createdAtMs: Date.parse(second.createdAt), id: second.id }
    expect(await store.workspaceKeys('ws_1', { limit: 2, after })).toEqual([third])
    expect(await store.workspaceKeys('ws_2', { limit: 2 })).toEqual([])
  })

  it('are revoked once, with the time of the first revocation, which is published to every edge', async () => {
    const key = aWorkspaceKey()
    await store.createWorkspaceKey(key)
    await untilPublished([key.digest])
    published = []
    expect(await store.revokeWorkspaceKey('ws_2', key.id, NOW)).toBe('absent')
    expect(await store.revokeWorkspaceKey('ws_1', key.id, NOW)).toBe('revoked')
    expect(await store.revokeWorkspaceKey('ws_1', key.id, NOW + 1_000)).toBe('revoked')
    await untilPublished([key.digest])
    expect(await store.workspaceKeyByDigest(key.digest)).toEqual({ ...key, revokedAt: NOW_TEXT })
  })
})

describe('releases', () => {
  it('are found by their slug, whatever slug a client requests', async () => {
    const releases = createReleaseStore(redis)
    const { slug } = await registerRelease(releases, { slug: 'rel_a' })
    const counters = { sourceMapCount: 1, sourceFileCount: 2 }
    const pointer = { version: 1, sequence: 1, objectKey: 'a/b', ...counters, completedAt: AT } as const
    await releases.replaceManifest('ws_1', slug, pointer)
    expect(await releases.release('ws_1', slug)).toMatchObject({ slug })
    expect(await releases.manifest('ws_1', slug)).toEqual(pointer)
    for (const other of [`${slug}:manifest`, `${slug}%3Amanifest`, `${slug}\u0000`, 'rel_ü:*']) {
      expect(await releases.release('ws_1', other), other).toBeUndefined()
      expect(await releases.manifest('ws_1', other), other).toBeUndefined()
    }
  })

  it('make room for a new one: the oldest without a manifest is removed (remove-unfinished.lua)', async () => {
    const releases = createReleaseStore(redis)
    const at = (ms: number) => new Date(NOW + ms).toISOString()
    const pointer = {
      version: 1,
      sequence: 1,
      objectKey: 'a/b',
      sourceMapCount: 1,
      sourceFileCount: 1,
      completedAt: AT,
    } as const
    for (const [ms, slug] of ['rel_a', 'rel_b', 'rel_c'].entries()) {
      await registerRelease(releases, { slug, createdAt: at(ms) })
    }
    expect(await releases.replaceManifest('ws_1', 'rel_a', pointer)).toMatchObject({ isCurrent: true })
    const others = Array.from({ length: RELEASES_MAX - 3 }, (_, i) => [String(NOW + 10), `rel_x${i}`]).flat()
    await redis.zadd(releaseKeys.releases('ws_1'), ...others)
    await registerRelease(releases, { slug: 'rel_d', createdAt: at(20) })
    expect(await releases.release('ws_1', 'rel_a')).toBeDefined()
    expect(await releases.release('ws_1', 'rel_b')).toBeUndefined()
    expect(await redis.zcard(releaseKeys.releases('ws_1'))).toBe(RELEASES_MAX)
    // Registered again, it needs no room.
    await registerRelease(releases, { slug: 'rel_c' })

    for (const slug of ['rel_c', 'rel_d']) await releases.replaceManifest('ws_1', slug, pointer)
    const refused = registerRelease(releases, { slug: 'rel_e' })
    await expect(refused).rejects.toThrow('too many releases')
    expect(await redis.zcard(releaseKeys.unfinished('ws_1'))).toBe(0)
  })

  it('are removed with their pointer, which a late completion does not write again (replace-manifest.lua)', async () => {
    const releases = createReleaseStore(redis)
    await registerRelease(releases, { slug: 'rel_a' })
    const pointer = {
      version: 1,
      sequence: 1,
      objectKey: 'a/b',
      sourceMapCount: 1,
      sourceFileCount: 1,
      completedAt: AT,
    } as const
    await releases.replaceManifest('ws_1', 'rel_a', pointer)
    expect(await releases.remove('ws_2', 'rel_a')).toBe('absent')
    expect(await releases.remove('ws_1', 'rel_a')).toBe('removed')
    expect(await releases.remove('ws_1', 'rel_a')).toBe('absent')
    const late = await releases.replaceManifest('ws_1', 'rel_a', { ...pointer, sequence: 2 })
    expect(late).toEqual({ isCurrent: false, before: undefined })
    expect(await redis.keys('*rel*')).toEqual([])
  })

  it('fail with an error that names the key when their record is invalid', async () => {
    for (const text of ['{', '{"version":2}']) {
      await redis.set(releaseKeys.release('ws_1', 'rel_a'), text)
      const read = createReleaseStore(redis).release('ws_1', 'rel_a')
      await expect(read).rejects.toThrow(DirectoryRecordError)
      await expect(read).rejects.toThrow(releaseKeys.release('ws_1', 'rel_a'))
    }
  })
})

it('an invalid record is an error that names its key, not an absent record', async () => {
  for (const text of ['{', '{"version":2}', 'null']) {
    await redis.set(directoryKeys.surface('ws_1', 'srf_1'), text)
    await expect(store.surface('ws_1', 'srf_1')).rejects.toThrow(DirectoryRecordError)
    await expect(store.surface('ws_1', 'srf_1')).rejects.toThrow(directoryKeys.surface('ws_1', 'srf_1'))
  }
})
