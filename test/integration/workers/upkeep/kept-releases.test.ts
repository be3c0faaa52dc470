import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ManifestPointer } from '../../../../schemas/records/directory.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { createDirectory } from '../../../../shared/directory/directory.ts'
import { upkeepKeys } from '../../../../shared/directory/record.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { manifestKey } from '../../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { hasUploads, removeUploads } from '../../../../shared/queue/remove-uploads.ts'
import { uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { type ExpireReleasesDeps, expireReleases } from '../../../../workers/upkeep/expire-releases.ts'
import { listObjects } from '../../../support/oracles/list-objects.ts'
import { putWorkspace } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { registerRelease } from '../../../support/workspaces/stored-releases.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/7`
const WORKSPACE = { id: `ws_${randomBytes(5).toString('hex')}`, slug: `kept-${randomBytes(5).toString('hex')}` }
const workspaceId = WORKSPACE.id
const slug = 'rel_old'
const keys = uploadKeys({ workspaceId, surfaceId: 'srf_1', slug })
const OLD = new Date(Date.now() - 60 * DAY_MS).toISOString()
const redis = new Redis(redisUrl)
const releases = createReleaseStore(redis)
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })

beforeAll(async () => {
  await redis.flushdb()
  await putWorkspace(redisUrl, WORKSPACE)
  await createDirectory(redis).changeRetention(workspaceId, () => ({ releases: 50 }))
})
beforeEach(async () => {
  await removeUploads(redis, { workspaceId, surfaceId: 'srf_1', slug })
  await releases.remove(workspaceId, slug)
  await objects.deleteMany(await manifests())
  await registerRelease(releases, { workspaceId, slug, createdAt: OLD })
})
afterAll(() => {
  objects.close()
  redis.disconnect()
})

/** Stores a manifest and makes it current. */
async function complete(sequence: number, completedAt: string): Promise<void> {
  const objectKey = manifestKey(workspaceId, slug, sequence)
  await objects.put(objectKey, Buffer.from('{}'), { contentType: 'application/json' })
  const pointer: ManifestPointer = {
    version: 1,
    sequence,
    objectKey,
    completedAt,
    sourceMapCount: 1,
    sourceFileCount: 1,
  }
  await releases.replaceManifest(workspaceId, slug, pointer)
}

const manifests = async () =>
  (await listObjects(services.s3, `releases/${workspaceId}/${slug}/`)).map(({ key }) => key).sort()

async function sweep(change: Partial<ExpireReleasesDeps> = {}): Promise<void> {
  await expireReleases({
    directory: createDirectory(redis),
    directoryRedis: redis,
    releases,
    hasUploads: release => hasUploads(redis, release),
    removeUploads: release => removeUploads(redis, release),
    store: objects,
    objects: { delete: async (_, found) => objects.deleteMany(found) },
    logger: pino({ level: 'silent' }),
    now: Date.now,
    assertElected: async () => {},
    ...change,
  })
}

/** Sweeps, and does something after the sweep has read its page of releases, before it removes any. */
async function sweepWhile(act: () => Promise<unknown>): Promise<void> {
  await sweep({
    releases: {
      ...releases,
      async releases(...args) {
        const page = await releases.releases(...args)
        await act()
        return page
      },
    },
  })
}

it.each([0, 1])(
  'keeps a release that is completed after the sweep has read it, with %i earlier completions',
  async n => {
    if (n === 1) await complete(1, OLD)
    await sweepWhile(async () => {
      await redis.sadd(keys.sealed, 'a'.repeat(64))
      await complete(2, new Date().toISOString())
    })
    expect(await releases.manifest(workspaceId, slug)).toMatchObject({ sequence: 2 })
    expect(await manifests()).toContain(manifestKey(workspaceId, slug, 2))
    expect(await redis.scard(keys.sealed)).toBe(1)
  },
)

it('keeps a release that was deleted and registered again after the sweep has read it', async () => {
  await sweepWhile(async () => {
    await releases.remove(workspaceId, slug)
    await registerRelease(releases, { workspaceId, slug })
  })
  expect(await releases.release(workspaceId, slug)).toBeDefined()
})

it('deletes no manifest of a later completion, whose worker makes it current next', async () => {
  await complete(1, OLD)
  const later = manifestKey(workspaceId, slug, 2)
  await objects.put(later, Buffer.from('{}'), { contentType: 'application/json' })
  await sweep()
  expect(await manifests()).toEqual([later])
})

describe('a removal that was interrupted', () => {
  const notes = () => redis.scard(upkeepKeys.removedReleases)

  it.each(['claims', 'manifests'])('before the %s were removed is finished by the next run', async part => {
    await complete(1, OLD)
    await redis.sadd(keys.sealed, 'a'.repeat(64))
    const fail = () => Promise.reject(new Error('interrupted'))
    const change = part === 'claims' ? { removeUploads: fail } : { objects: { delete: fail } }
    await expect(sweep(change)).rejects.toThrow('interrupted')
    expect(await releases.release(workspaceId, slug)).toBeUndefined()
    await expect(sweep(change)).rejects.toThrow('interrupted')
    expect([await manifests(), await notes()]).toEqual([[manifestKey(workspaceId, slug, 1)], 1])
    const later = manifestKey(workspaceId, slug, 2)
    await objects.put(later, Buffer.from('{}'), { contentType: 'application/json' })
    await sweep()
    expect([await manifests(), await redis.exists(keys.sealed), await notes()]).toEqual([[later], 0, 0])
  })

  it('leaves the uploads of a release that was registered again', async () => {
    await complete(1, OLD)
    await expect(sweep({ removeUploads: () => Promise.reject(new Error('interrupted')) })).rejects.toThrow()
    await registerRelease(releases, { workspaceId, slug })
    await redis.sadd(keys.claimed, 'a'.repeat(64))
    await sweep()
    expect([await redis.scard(keys.claimed), await notes()]).toEqual([1, 0])
  })
})

it('keeps a release when the retention becomes longer after the sweep has read it', async () => {
  const directory = createDirectory(redis)
  await sweepWhile(() => directory.changeRetention(workspaceId, () => ({ releases: 70 })))
  expect(await releases.release(workspaceId, slug)).toBeDefined()
  await directory.changeRetention(workspaceId, () => ({ releases: 50 }))
  await sweep()
  expect(await releases.release(workspaceId, slug)).toBeUndefined()
})

it.each([
  ['declared maps', () => redis.hset(keys.signed, 'a.map', '{}')],
  ['a map', () => redis.hset(keys.singles, 'a.map', 'x')],
  ['claimed parts', () => redis.sadd(keys.claimed, 'a'.repeat(64))],
  ['a completion', () => redis.zadd(keys.recorded, '+inf', 'a'.repeat(64))],
])('keeps an old release with %s, until they are gone', async (_, upload) => {
  // An old version that is registered again keeps the time of its first registration.
  expect(await registerRelease(releases, { workspaceId, slug })).toMatchObject({ createdAt: OLD })
  await upload()
  await sweep()
  expect(await releases.release(workspaceId, slug)).toBeDefined()
  expect(await hasUploads(redis, { workspaceId, surfaceId: 'srf_1', slug })).toBe(true)

  await redis.del(keys.signed, keys.singles, keys.claimed, keys.recorded)
  await sweep()
  expect(await releases.release(workspaceId, slug)).toBeUndefined()
})
