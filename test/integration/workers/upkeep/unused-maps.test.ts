import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { TokenBuckets } from '../../../../shared/concurrency/token-bucket.ts'
import { deleteRelease } from '../../../../shared/directory/delete-release.ts'
import { createDirectory } from '../../../../shared/directory/directory.ts'
import { mapKeys, upkeepKeys } from '../../../../shared/directory/record.ts'
import { commitIf } from '../../../../shared/directory/transaction.ts'
import { writePointer } from '../../../../shared/directory/writes.ts'
import { sourceMapKey, sourceMapPrefix } from '../../../../shared/object-store/object-keys.ts'
import { removeUploads } from '../../../../shared/queue/remove-uploads.ts'
import { completeRelease, REFUSED_READS } from '../../../../workers/source-maps/complete-release.ts'
import { MapContents } from '../../../../workers/source-maps/map-contents.ts'
import { ObjectDeleter } from '../../../../workers/upkeep/delete-objects.ts'
import { type SweepMapsDeps, sweepMaps, UNUSED_FOR_MS } from '../../../../workers/upkeep/sweep-maps.ts'
import { UNUSED_MAPS_MAX, UnusedMaps } from '../../../../workers/upkeep/unused-maps.ts'
import { digestOf, entryOf, mapOf, type NamedMap } from '../../../support/clients/release-client.ts'
import { createDatabase, putWorkspace } from '../../../support/services/api.ts'
import { startReleaseStack } from '../../../support/services/release-stack.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { insertRows } from '../../../support/workspaces/session-rows.ts'

const services = sharedServices()
const stack = await startReleaseStack(services, `${services.redisUrl}/9`)
const { redis, objects, releases, client, workspaceId, surfaceId } = stack
const DATABASE = `unused_maps_${process.pid}`

let clickhouse: ClickHouseClient
let version = 0
/** Age of the objects that are in the store. It stamps them with the real time. */
let age = 0

beforeAll(async () => {
  clickhouse = await createDatabase(services.clickhouseUrl, DATABASE)
  await putWorkspace(`${services.redisUrl}/9`, { id: workspaceId, slug: `maps-${process.pid}` })
})
afterAll(async () => {
  await clickhouse?.command({ query: `DROP DATABASE ${DATABASE}` })
  await clickhouse?.close()
  await stack.stop()
})
beforeEach(async () => {
  age = 2 * DAY_MS
  const { releases: all } = await releases.releases(workspaceId, { limit: 100 })
  for (const { release } of all) await remove(release.slug)
  await objects.deleteMany(await stack.listed(sourceMapPrefix(workspaceId)))
  await redis.del(mapKeys.unused(workspaceId), mapKeys.stored(workspaceId))
})

const named = (path: string): NamedMap => ({ path, bytes: mapOf(path + randomUUID()) })
const namedMany = (count: number) => Array.from({ length: count }, (_, i) => named(`many-${i}.map`))
const register = () => client.register(`3.0.${++version}`)
const sha256Of = ({ bytes }: NamedMap) => digestOf(bytes)
const isStored = async (map: NamedMap) => (await objects.head(sourceMapKey(workspaceId, sha256Of(map)))) !== undefined
const areStored = (maps: readonly NamedMap[]) => Promise.all(maps.map(isStored))
const isKnown = async (map: NamedMap) => (await releases.storedMaps(workspaceId, [sha256Of(map)])).size === 1
const unusedCount = () => redis.zcard(mapKeys.unused(workspaceId))

async function* listAged(prefix: string, after?: string) {
  for await (const page of objects.list(prefix, after)) {
    yield page.map(object => ({ ...object, lastModifiedMs: object.lastModifiedMs - age }))
  }
}

/** Makes the objects and the times of the list older, as if this time had passed. */
async function pass(ms: number): Promise<void> {
  age += ms
  const shift = `for _, map in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZINCRBY', KEYS[1], -ARGV[1], map) end`
  await redis.eval(shift, 1, mapKeys.unused(workspaceId), ms)
}

async function sweep(overrides: Partial<SweepMapsDeps> = {}): Promise<void> {
  await sweepMaps({
    redis,
    directoryRedis: redis,
    clickhouse,
    directory: createDirectory(redis),
    releases,
    store: { getStream: objects.getStream, list: listAged },
    objects: new ObjectDeleter({ objects, onDeleted: () => {}, stopping: new AbortController().signal }),
    logger: pino({ level: process.env.TEST_LOG ?? 'silent' }),
    assertElected: async () => {},
    ...overrides,
  })
}

/** Runs the sweep that notes unused maps, and the one that deletes them. */
async function sweepTwice(overrides: Partial<SweepMapsDeps> = {}): Promise<void> {
  await sweep(overrides)
  await pass(UNUSED_FOR_MS)
  await sweep(overrides)
}

/** Uploads maps as a build does, completes the release with them, and returns how many were uploaded. */
async function upload(slug: string, maps: readonly NamedMap[]): Promise<number> {
  const sent = await client.upload(slug, maps)
  await complete(slug, maps)
  return sent
}

async function complete(slug: string, maps: readonly NamedMap[]): Promise<void> {
  expect(
    await client.complete(
      slug,
      maps.map(map => entryOf(map)),
    ),
  ).toMatchObject({ status: 200 })
}

async function releaseOf(...maps: NamedMap[]): Promise<string> {
  const slug = await register()
  await upload(slug, maps)
  return slug
}

const remove = (slug: string) =>
  deleteRelease({ releases, removeUploads: key => removeUploads(redis, key) }, workspaceId, slug)

/** Stores a map that nothing uses. */
async function storeUnused(map: NamedMap): Promise<void> {
  await remove(await releaseOf(map))
}

async function debugIdsOf(map: NamedMap): Promise<string[]> {
  const result = await clickhouse.query({
    query: `SELECT debug_id FROM source_maps WHERE sha256 = '${sha256Of(map)}'`,
    format: 'JSONEachRow',
  })
  return (await result.json<{ debug_id: string }>()).map(row => row.debug_id)
}

it('deletes a map that no release names any more in a later run, with its rows, and lets builds upload it in between (add-unused-maps.lua, begin-deletion.lua)', async () => {
  const [shared, own] = [named('shared.map'), named('own.map')]
  const first = await releaseOf(shared, own)
  await releaseOf(shared)
  const row = { workspace_id: workspaceId, surface_id: surfaceId, release_slug: first, sequence: 1 }
  await insertRows(clickhouse, 'source_maps', [
    { ...row, debug_id: 'shared', sha256: sha256Of(shared) },
    { ...row, debug_id: 'own', sha256: sha256Of(own) },
  ])
  await sweep()
  expect(await unusedCount()).toBe(0)

  await remove(first)
  await releases.addStoredMaps(workspaceId, [sha256Of(shared), sha256Of(own)])
  await sweep()
  expect([await isStored(own), await isKnown(own), await isKnown(shared)]).toEqual([true, false, true])
  await pass(UNUSED_FOR_MS - DAY_MS)
  await sweep()
  expect([await isStored(own), await debugIdsOf(own)]).toEqual([true, ['own']])
  await pass(DAY_MS)
  await sweep()
  expect([await isStored(own), await isStored(shared)]).toEqual([false, true])
  expect([await debugIdsOf(own), await debugIdsOf(shared)]).toEqual([[], ['shared']])
  expect([await unusedCount(), await redis.keys('*deleted-map*')]).toEqual([0, []])
  expect(await upload(await register(), [own])).toBe(1)
  expect(await isStored(own)).toBe(true)
})

it('deletes the maps of a manifest that was replaced, and keeps those of the current one', async () => {
  const [before, current] = [named('app.map'), named('app.map')]
  const slug = await releaseOf(before)
  await upload(slug, [current])
  await sweepTwice()
  expect(await areStored([before, current])).toEqual([false, true])
})

it('keeps an object that is younger than a day', async () => {
  const map = named('young.map')
  await storeUnused(map)
  age = 0.9 * DAY_MS
  await sweep()
  expect(await unusedCount()).toBe(0)
})

it('keeps a map that is uploaded, sent or completed again between the two runs', async () => {
  const [uploaded, sent, completed, left] = [named('a.map'), named('b.map'), named('c.map'), named('d.map')]
  for (const map of [uploaded, sent, completed, left]) await storeUnused(map)
  await sweep()
  expect(await unusedCount()).toBe(4)
  expect(await upload(await register(), [uploaded])).toBe(1)
  expect(await client.putSingle(await register(), sent.path, sent.bytes)).toMatchObject({ status: 200 })
  await complete(await register(), [completed])
  expect(await unusedCount()).toBe(1)
  await pass(UNUSED_FOR_MS)
  await sweep()
  expect(await areStored([uploaded, sent, completed, left])).toEqual([true, true, true, false])
})

it('keeps a map that was declared as stored, sent for a path, or assembled from parts', async () => {
  const [declared, single, assembled] = [named('declared.map'), named('single.map'), named('parts.map')]
  const other = await releaseOf(declared)
  const slug = await register()
  const [signed] = await client.sign(slug, [declared])
  expect(signed).toMatchObject({ alreadyUploaded: true })
  await remove(other)
  await client.putSingle(slug, single.path, single.bytes)
  const replaced = await register()
  expect(await client.putPart(replaced, assembled.path, 0, assembled.bytes)).toMatchObject({ status: 200 })
  await complete(replaced, [assembled])
  await upload(replaced, [named('other.map')])

  await sweepTwice()
  expect(await areStored([declared, single, assembled])).toEqual([true, true, true])
  await complete(slug, [declared, single])
  await complete(replaced, [assembled])
})

it('keeps an object that was written since', async () => {
  const map = named('written.map')
  await storeUnused(map)
  await redis.zadd(mapKeys.unused(workspaceId), Date.now() - 2 * UNUSED_FOR_MS, Buffer.from(sha256Of(map), 'hex'))
  await sweep()
  expect([await isStored(map), await unusedCount()]).toEqual([true, 0])
})

it('keeps the maps of a manifest that is restored between the two runs', async () => {
  const map = named('restored.map')
  const slug = await releaseOf(map)
  const pointer = await releases.manifest(workspaceId, slug)
  if (pointer === undefined) throw new Error('the release has no manifest')
  await remove(slug)
  await sweep()
  expect(await unusedCount()).toBe(1)
  // As if it was restored after the second run had read the manifests.
  const { commands } = writePointer({ workspaceId, releaseSlug: slug }, pointer)
  await commitIf(redis, { guards: [], commands })
  await redis.del(commands[0]?.[1] ?? '')
  await pass(UNUSED_FOR_MS)
  await sweep()
  expect(await isStored(map)).toBe(true)
})

it('no completion uses a map while its object is being deleted, and the next one stores it (use-map.lua)', async () => {
  const map = named('late.map')
  await storeUnused(map)
  const staged = { key: `uploads/${workspaceId}/late` }
  await objects.put(staged.key, map.bytes, { contentType: 'application/json' })
  const contents = () => new MapContents({ objects, releases }, workspaceId)
  const deleted: string[][] = []
  const deleter: SweepMapsDeps['objects'] = {
    async delete(_, keys) {
      await expect(contents().keep([staged], undefined)).rejects.toThrow('is being deleted')
      await expect(contents().find(sha256Of(map), undefined)).rejects.toThrow('is being deleted')
      await objects.deleteMany(keys)
      deleted.push([...keys])
    },
  }
  await sweepTwice({ objects: deleter })
  expect(deleted).toEqual([[sourceMapKey(workspaceId, sha256Of(map))]])
  expect(await contents().find(sha256Of(map), undefined)).toEqual({ outcome: 'absent' })
  expect(await contents().keep([staged], undefined)).toMatchObject({ outcome: 'found' })
  expect(await isStored(map)).toBe(true)
})

it('a completion that has looked up its maps more than a day ago starts over', async () => {
  const map = named('slow.map')
  await storeUnused(map)
  const slug = await register()
  let time = Date.now()
  const passing = () => {
    time += 2 * DAY_MS
    return time
  }
  const deps = {
    ...{ redis, objects, releases },
    refusedReads: new TokenBuckets(REFUSED_READS),
    retry: <T>(_: string, work: () => Promise<T>) => work(),
  }
  const body = Buffer.from(JSON.stringify({ files: [entryOf(map)], sourceFileCount: 1 }))
  const accepted = { workspaceId, surfaceId, slug, sequence: 1, body }
  await expect(completeRelease({ ...deps, now: passing }, accepted)).rejects.toThrow('starts over')
  expect(await releases.manifest(workspaceId, slug)).toBeUndefined()
  expect(await completeRelease({ ...deps, now: Date.now }, accepted)).toMatchObject({ outcome: 'completed' })
})

it('deletes no object when the deletion was taken over or forgotten meanwhile', async () => {
  const map = named('suspended.map')
  await storeUnused(map)
  const suspended = Object.create(clickhouse, {
    reads: {
      value: {
        async read(...args: Parameters<ClickHouseClient['reads']['read']>) {
          await redis.del(upkeepKeys.deletedMap(workspaceId, sha256Of(map)))
          return clickhouse.reads.read(...args)
        },
      },
    },
  }) as ClickHouseClient
  await sweep()
  await pass(UNUSED_FOR_MS)
  await expect(sweep({ clickhouse: suspended })).rejects.toThrow('taken too long')
  expect(await isStored(map)).toBe(true)
})

it('keeps all maps of a workspace while one of its manifests cannot be read', async () => {
  const map = named('unused.map')
  await storeUnused(map)
  const slug = await releaseOf(named('app.map'))
  const { objectKey = '' } = (await releases.manifest(workspaceId, slug)) ?? {}
  const manifest = await objects.get(objectKey, 1_000_000)
  await objects.deleteMany([objectKey])
  await sweepTwice()
  expect([await isStored(map), await unusedCount()]).toEqual([true, 0])
  await objects.put(objectKey, manifest?.body.subarray(0, 100) ?? Buffer.alloc(0), { contentType: 'application/json' })
  await sweepTwice()
  expect([await isStored(map), await unusedCount()]).toEqual([true, 0])
  await remove(slug)
  await sweepTwice()
  expect(await isStored(map)).toBe(false)
})

it('at most a bound of maps wait, and the others stay known until there is room', async () => {
  const unused = new UnusedMaps(redis, workspaceId)
  for (let i = 0; i < UNUSED_MAPS_MAX; i += 1_000) {
    await unused.add(Array.from({ length: 1_000 }, (_, k) => digestOf(Buffer.from(`${i + k}`))))
  }
  const further = named('further.map')
  await releases.addStoredMaps(workspaceId, [sha256Of(further)])
  await unused.add([sha256Of(further)])
  expect([await unusedCount(), await isKnown(further)]).toEqual([UNUSED_MAPS_MAX, true])
  await unused.remove([digestOf(Buffer.from('0'))])
  await unused.add([sha256Of(further)])
  expect([await unusedCount(), await isKnown(further)]).toEqual([UNUSED_MAPS_MAX, false])
})

it('has at most a bound of used maps in memory, and looks at the rest in further steps', async () => {
  const [used, unused] = [namedMany(24), namedMany(12)]
  await releaseOf(...used)
  await remove(await releaseOf(...unused))
  let lists = 0
  const store: SweepMapsDeps['store'] = {
    getStream: objects.getStream,
    async *list(prefix, after) {
      lists++
      for await (const page of listAged(prefix, after)) {
        for (let i = 0; i < page.length; i += 5) yield page.slice(i, i + 5)
      }
    },
  }
  await sweepTwice({ usedMapsMax: 4, store })
  expect(await areStored(used)).toEqual(used.map(() => true))
  expect(await areStored(unused)).toEqual(unused.map(() => false))
  expect(lists).toBeGreaterThan(12)
})
