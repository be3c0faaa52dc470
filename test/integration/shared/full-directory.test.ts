import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { DirectoryMemory } from '../../../shared/directory/directory-memory.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { contentsOf } from '../../support/oracles/contents-of.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { until } from '../../support/until.ts'
import { aSurface, aSurfaceKey, aWorkspaceKey } from '../../support/workspaces/directory-records.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

const NOW = Date.parse('2026-08-01T12:30:00.000Z')

let dir: string
let server: LocalService
let redis: Redis
let store: Directory

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-full-directory-'))
  server = await startRedis({ dir, port: await freePort(), password: 'test', log: () => {} })
  redis = new Redis(server.url)
  store = createDirectory(redis)
})
afterAll(async () => {
  redis?.disconnect()
  await server?.kill9()
  await rm(dir, { recursive: true, force: true })
})
beforeEach(async () => {
  await redis.config('SET', 'maxmemory', '1gb')
  await redis.flushdb()
})

/** Lets Redis refuse every command that needs memory. */
const fill = () => redis.config('SET', 'maxmemory', '1000000')

it('a full Redis changes nothing of what it refuses, and still revokes and deletes (commit.lua)', async () => {
  const releases = createReleaseStore(redis)
  const surface = aSurface()
  await store.putSurface(surface)
  const keys = [1, 2, 3].map(() => aSurfaceKey({ surfaceId: surface.id }))
  for (const key of keys) await store.createSurfaceKey(key)
  const apiKey = aWorkspaceKey()
  await store.createWorkspaceKey(apiKey)
  await registerRelease(releases, { slug: 'rel_a' })
  await fill()
  const before = await contentsOf(redis)
  const refused = await Promise.allSettled([
    store.createSurface(aSurface()),
    store.createSurfaceKey(aSurfaceKey({ surfaceId: surface.id })),
    store.createWorkspaceKey(aWorkspaceKey()),
    registerRelease(releases, { slug: 'rel_b' }),
  ])
  for (const outcome of refused) expect(outcome).toMatchObject({ reason: { message: expect.stringContaining('OOM') } })
  expect(await contentsOf(redis)).toEqual(before)

  expect(await store.revokeSurfaceKey('ws_1', surface.id, keys[0]?.id ?? '', NOW)).toBe('revoked')
  expect(await store.revokeWorkspaceKey('ws_1', apiKey.id, NOW)).toBe('revoked')
  expect(await store.deleteSurface('ws_1', surface.id, NOW)).toBe('deleted')
  expect(await releases.remove('ws_1', 'rel_a')).toBe('removed')
  const left = await store.surfaceKeys('ws_1', surface.id)
  expect(left.map(({ revokedAt }) => revokedAt)).toEqual(Array(3).fill(new Date(NOW).toISOString()))
  expect((await store.workspaceKey('ws_1', apiKey.id))?.revokedAt).not.toBeNull()
})

it('refuses what adds to the directory before Redis is full, and accepts it again afterwards', async () => {
  const memory = new DirectoryMemory({ redis, logger: pino({ level: 'silent' }) }, 50)
  const key = await issueKey(store, { kind: 'secret', scopes: ['release:write'] })
  const edge = await startEdge(server.url)
  const register = async () => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(`${edge.baseUrl}/v3/releases`, { method: 'POST', headers, body: '{"version":"1"}' })
    return { status: response.status, retryAfter: response.headers.get('retry-after') }
  }
  try {
    expect(memory.refuse()).toBeUndefined()
    // Enough for the memory of connections to be a small part. Redis makes it by itself: if it were sent, Redis would free
    // the buffer that received it, which is as large, at any time after its memory was read.
    await redis.setrange('ballast', 49_999_999, 'x')
    const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
    await redis.config('SET', 'maxmemory', String(Math.round(used * 1.1)))
    await until('it refuses', () => memory.refuse()?.code === 'INGEST_BACKPRESSURE')
    await until('the edge refuses', async () => (await register()).status === 429, { deadlineMs: 3_000 })
    expect(await register()).toEqual({ status: 429, retryAfter: '30' })
    await redis.config('SET', 'maxmemory', '1gb')
    await until('it accepts', () => memory.refuse() === undefined)
    await until('the edge accepts', async () => (await register()).status === 200, { deadlineMs: 3_000 })
  } finally {
    memory.stop()
    await edge.stop()
  }
})
