import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { adoptDirectory, adoptOnConnect, whenAdopted } from '../../../shared/directory/adopt.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { ensureReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { DIRECTORY_ROOT } from '../../../shared/directory/record.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { contentsOf } from '../../support/oracles/contents-of.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { aSurface, aSurfaceKey, aWorkspace, aWorkspaceKey } from '../../support/workspaces/directory-records.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

const redisUrl = `${sharedServices().redisUrl}/10`
const logger = pino({ level: 'silent' })
const PAST = '2026-08-01T12:00:00.000Z'
/** Indexes that earlier versions did not write. */
const NEW_INDEXES = /:(surface-key-ends|key-ends|deleted-surfaces|unfinished-releases)$/

let redis: Redis
let store: Directory

beforeAll(() => {
  redis = new Redis(redisUrl)
  store = createDirectory(redis)
})
afterAll(() => redis?.disconnect())
beforeEach(async () => {
  await redis.flushdb()
})

/** Fills a directory of many keys, and returns the text of a public key. */
async function fill(): Promise<string> {
  await ensureReceiptSecret(redis)
  const workspace = aWorkspace({ id: 'ws_1', slug: 'acme' })
  await store.putWorkspace(workspace)
  await store.putUser({ version: 1, id: 'user_1', email: null, name: null, createdAt: PAST })
  await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'user_1', permissions: ['org:surfaces:read'] })
  await store.putSurface(aSurface({ id: 'srf_1' }))
  for (let i = 0; i < 1_200; i++) await store.putSurfaceKey(aSurfaceKey({ revokedAt: i % 2 ? PAST : null }))
  await store.createWorkspaceKey(aWorkspaceKey({ createdAt: PAST, expiresAt: '2030-01-01T00:00:00.000Z' }))
  const releases = createReleaseStore(redis)
  await registerRelease(releases, { slug: 'rel_a', metadata: { branch: 'main' } })
  await registerRelease(releases, { slug: 'rel_b', name: '2' })
  await releases.addStoredMaps('ws_1', ['ab'.repeat(32)])
  return issueKey(store)
}

/** Gives the keys the names of earlier versions, among keys of the queues. */
async function makeOld(): Promise<void> {
  for (const key of await redis.keys(`${DIRECTORY_ROOT.replace(/[{}]/g, '?')}:*`)) {
    if (NEW_INDEXES.test(key)) await redis.del(key)
    else await redis.rename(key, key.replace(DIRECTORY_ROOT, 'penstock'))
  }
  await redis.mset({
    'penstock:queue:spans:payload:1': 'x',
    'penstock:{spans.0}:payload:1': 'x',
    'penstock:verdict:1': 'x',
  })
}

it('renames the keys of an earlier version once, whichever of several processes comes first', async () => {
  await fill()
  const before = await contentsOf(redis)
  await makeOld()
  const others = [1, 2, 3].map(() => new Redis(redisUrl))
  await Promise.all([redis, ...others].map(connection => adoptDirectory(connection, logger)))
  for (const other of others) other.disconnect()
  const { 'penstock:queue:spans:payload:1': a, 'penstock:{spans.0}:payload:1': b, ...after } = await contentsOf(redis)
  const { 'penstock:verdict:1': c, ...directory } = after
  expect(directory).toEqual(before)
  expect([a, b, c]).toEqual(['x', 'x', 'x'])
})

it('continues where another process was interrupted, and keeps what was written since', async () => {
  await fill()
  const before = await contentsOf(redis)
  await makeOld()
  // Some keys were renamed, the process died with the lock, and another key was written under a new name.
  for (const key of (await redis.keys('penstock:credential:*')).slice(0, 300)) {
    await redis.rename(key, key.replace('penstock', DIRECTORY_ROOT))
  }
  await redis.set(`${DIRECTORY_ROOT}:adoption`, 'a process that has died', 'PX', 300)
  const late = aSurface({ id: 'srf_late' })
  await store.putSurface(late)
  await adoptDirectory(redis, logger)
  expect(await store.surface('ws_1', 'srf_late')).toEqual(late)
  expect((await store.surfaces('ws_1', { limit: 5 })).map(({ id }) => id).sort()).toEqual(['srf_1', 'srf_late'])
  const after = await contentsOf(redis)
  const missing = Object.keys(before).filter(key => !(key in after))
  expect(missing).toEqual([])
  expect(await redis.keys('penstock:workspace*')).toEqual([])
})

it('lets an edge accept the keys of an earlier version from its first request on', async () => {
  const key = await fill()
  const secret = await redis.get(`${DIRECTORY_ROOT}:receipt-secret`)
  await makeOld()
  const edge = await startEdge(redisUrl)
  try {
    const response = await fetch(`${edge.baseUrl}/v3/session`, {
      method: 'POST',
      headers: { 'x-service-public-key': key, 'content-type': 'application/json' },
      body: '{"sessionId":"s"}',
    })
    expect(response.status).toBe(200)
    expect(await redis.get(`${DIRECTORY_ROOT}:receipt-secret`)).toBe(secret)
  } finally {
    await edge.stop()
  }
})

it('makes lookups wait until the directory is adopted, and fail when that takes too long', async () => {
  await fill()
  await makeOld()
  await redis.set(`${DIRECTORY_ROOT}:adoption`, 'another process', 'PX', 60_000)
  const adoption = adoptOnConnect(redis, logger)
  const gated = whenAdopted({ workspaceBySlug: store.workspaceBySlug }, adoption)
  await expect(gated.workspaceBySlug('acme')).rejects.toThrow('not adopted yet')
  const waiting = gated.workspaceBySlug('acme')
  await redis.del(`${DIRECTORY_ROOT}:adoption`)
  expect(await waiting).toMatchObject({ slug: 'acme' })
  expect(adoption.isDone).toBe(true)
})
