import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import type { Workspace } from '../../../../schemas/records/directory.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { mapKeys, upkeepKeys } from '../../../../shared/directory/record.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { PermanentError } from '../../../../shared/runtime/errors.ts'
import { ObjectDeleter } from '../../../../workers/upkeep/delete-objects.ts'
import { type SweepMapsDeps, sweepMaps, UNUSED_FOR_MS } from '../../../../workers/upkeep/sweep-maps.ts'
import { UnusedMaps } from '../../../../workers/upkeep/unused-maps.ts'
import { digestOf } from '../../../support/clients/release-client.ts'
import { createDatabase } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { aWorkspace } from '../../../support/workspaces/directory-records.ts'
import { insertRows } from '../../../support/workspaces/session-rows.ts'
import { registerRelease } from '../../../support/workspaces/stored-releases.ts'

const services = sharedServices()
const redis = new Redis(`${services.redisUrl}/7`)
const releases = createReleaseStore(redis)
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
const DATABASE = `interrupted_sweeps_${process.pid}`

let clickhouse: ClickHouseClient
let workspaceId = ''
/** The only map of the workspace. Nothing uses it. */
let sha256 = ''
/** Age of the object of the map, which the store has stamped with the real time. */
let age = 0

beforeAll(async () => {
  clickhouse = await createDatabase(services.clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await clickhouse?.command({ query: `DROP DATABASE ${DATABASE}` })
  await clickhouse?.close()
  objects.close()
  redis.disconnect()
})
beforeEach(async () => {
  workspaceId = `ws_${randomUUID()}`
  sha256 = digestOf(Buffer.from(workspaceId))
  age = 2 * DAY_MS
  await objects.put(sourceMapKey(workspaceId, sha256), Buffer.from('{}'), { contentType: 'application/json' })
})

async function* listAged(prefix: string, after?: string) {
  for await (const page of objects.list(prefix, after)) {
    yield page.map(object => ({ ...object, lastModifiedMs: object.lastModifiedMs - age }))
  }
}

const directoryOf = (...ids: string[]): SweepMapsDeps['directory'] => ({
  async *workspaces(): AsyncGenerator<Workspace> {
    for (const id of ids) yield aWorkspace({ id })
  },
})

async function sweep(overrides: Partial<SweepMapsDeps> = {}): Promise<void> {
  await sweepMaps({
    redis,
    directoryRedis: redis,
    clickhouse,
    directory: directoryOf(workspaceId),
    releases,
    store: { getStream: objects.getStream, list: listAged },
    objects: { delete: (_, keys) => objects.deleteMany(keys) },
    logger: pino({ level: 'silent' }),
    assertElected: async () => {},
    ...overrides,
  })
}

/** Notes the map as unused, and lets the time pass after which it may be deleted. */
async function noteLongAgo(): Promise<void> {
  await sweep()
  expect(await isNoted()).toBe(true)
  age += UNUSED_FOR_MS
  await redis.zincrby(mapKeys.unused(workspaceId), -UNUSED_FOR_MS, Buffer.from(sha256, 'hex'))
}

const isNoted = async () => (await redis.zcard(mapKeys.unused(workspaceId))) === 1
const isStored = async () => (await objects.head(sourceMapKey(workspaceId, sha256))) !== undefined
const isMarked = async () => (await redis.exists(upkeepKeys.deletedMap(workspaceId, sha256))) === 1

const interrupt = () => Promise.reject(new Error('interrupted'))

/** Returns a client of ClickHouse whose reads or commands fail. */
const failing = (part: 'reads' | 'command') =>
  Object.create(clickhouse, {
    [part]: { value: part === 'reads' ? { read: interrupt } : interrupt },
  }) as ClickHouseClient

it('keeps a map that was assembled from parts for a manifest which a restored directory does not name', async () => {
  const owner = { workspaceId, surfaceId: 'srf_1', slug: 'rel_1' }
  await registerRelease(releases, owner)
  const keys = uploadKeys(owner)
  await redis.sadd(keys.sealed, 'ab'.repeat(32))
  await redis.hset(keys.partsOf('ab'.repeat(32)), { sealed: 1, assembled: `1:${sha256}:2` })
  await sweep()
  expect(await isNoted()).toBe(false)
  await redis.del(keys.sealed)
  await sweep()
  expect(await isNoted()).toBe(true)
})

it('continues with the next workspace after a fault, and reports the fault at the end', async () => {
  const list: SweepMapsDeps['store']['list'] = (prefix, after) => {
    if (prefix.includes('/ws_broken')) throw new Error('refused')
    return listAged(prefix, after)
  }
  const store = { getStream: objects.getStream, list }
  const broken = Array.from({ length: 10 }, (_, i) => `ws_broken${i}`)
  await expect(sweep({ store, directory: directoryOf(...broken, workspaceId) })).rejects.toThrow('refused')
  expect(await isNoted()).toBe(false)
  let looks = 0
  const assertElected = async () => {
    if (++looks === 2) throw new Error('another process is elected')
  }
  const directory = directoryOf('ws_broken', workspaceId)
  await expect(sweep({ store, directory, assertElected })).rejects.toThrow('another process')
  expect(await isNoted()).toBe(false)
  await expect(sweep({ store, directory })).rejects.toThrow('refused')
  expect(await isNoted()).toBe(true)
})

it('keeps the maps of a workspace whose manifest the store refuses, and does not fail', async () => {
  await registerRelease(releases, { workspaceId, slug: 'rel_1' })
  const counters = { sourceMapCount: 1, sourceFileCount: 1, completedAt: new Date().toISOString() }
  await releases.replaceManifest(workspaceId, 'rel_1', { version: 1, sequence: 1, objectKey: 'a', ...counters })
  const getStream = () => Promise.reject(new PermanentError('refused'))
  await sweep({ store: { getStream, list: listAged } })
  expect(await isNoted()).toBe(false)
})

it('lets maps be used again when it is stopped after their objects were deleted', async () => {
  await noteLongAgo()
  await sweep({ objects: new ObjectDeleter({ objects, onDeleted: () => {}, stopping: AbortSignal.abort() }) })
  expect([await isStored(), await isMarked()]).toEqual([false, false])
})

it('lets maps be used again when their rows could not be counted, and not while rows may still be deleted', async () => {
  await noteLongAgo()
  await expect(sweep({ clickhouse: failing('reads') })).rejects.toThrow()
  expect([await isStored(), await isMarked()]).toEqual([true, false])
  const row = { workspace_id: workspaceId, surface_id: 'srf_1', release_slug: 'rel_1', sequence: 1 }
  await insertRows(clickhouse, 'source_maps', [{ ...row, debug_id: 'a', sha256 }])
  await noteLongAgo()
  await expect(sweep({ clickhouse: failing('command') })).rejects.toThrow()
  expect([await isStored(), await isMarked()]).toEqual([true, true])
})

it('ends no deletion that another run has begun since (end-deletion.lua)', async () => {
  await noteLongAgo()
  const unused = new UnusedMaps(redis, workspaceId)
  expect(await unused.beginDeletion([sha256], UNUSED_FOR_MS)).toEqual([sha256])
  await redis.set(upkeepKeys.deletedMap(workspaceId, sha256), 'another run')
  await unused.endDeletion([sha256])
  expect(await isMarked()).toBe(true)
})
