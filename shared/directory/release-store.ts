import type { Redis } from 'ioredis'
import {
  type ManifestPointer,
  manifestPointerSchema,
  type Release,
  releaseSchema,
} from '../../schemas/records/directory.ts'
import { createMapStore, type MapStore } from './maps/map-store.ts'
import { DIRECTORY_ROOT, mapKeys, parseRecord, upkeepKeys } from './record.ts'

/** Stores the releases of a workspace, and which manifest of each is current. */
export interface ReleaseStore extends MapStore {
  /**
   * Registers a release. Returns the release as it was first registered under this slug, because it never changes. At
   * RELEASES_MAX the oldest release without a manifest is removed. If all of them have one, the release is refused.
   */
  register(release: Release): Promise<Release | 'too_many_releases'>
  /** Removes a release with its pointer. Its manifest stays in the object store, and its maps while they are used. */
  remove(workspaceId: string, slug: string): Promise<'removed' | 'absent'>
  /**
   * Removes a release like `remove` unless it was registered again or completed since it was read with this manifest. Adds the
   * note to `removedReleases` (upkeepKeys) in the same step.
   */
  removeUnchanged(release: Release, manifest: ManifestPointer | undefined, note: string): Promise<'removed' | 'changed'>
  release(workspaceId: string, slug: string): Promise<Release | undefined>
  /** Returns a page of releases, the last registered first. `after` is the end of the previous page. */
  releases(workspaceId: string, page: { limit: number; after?: ReleaseCursor | undefined }): Promise<ReleasePage>
  manifest(workspaceId: string, slug: string): Promise<ManifestPointer | undefined>
  /**
   * Makes a manifest current unless that of a later completion is, or the release was removed. Returns the previous pointer,
   * and whether this manifest is current now. A repeated call returns true as well.
   */
  replaceManifest(
    workspaceId: string,
    slug: string,
    pointer: ManifestPointer,
  ): Promise<{ isCurrent: boolean; before: ManifestPointer | undefined }>
}

/** The release at which a page ends. */
export interface ReleaseCursor {
  readonly createdAtMs: number
  readonly slug: string
}

/** A page of releases. */
export interface ReleasePage {
  /** Each release with its current manifest, all read at one moment. */
  readonly releases: readonly { readonly release: Release; readonly manifest: ManifestPointer | undefined }[]
  /** Undefined on the last page. */
  readonly end: ReleaseCursor | undefined
}

/** Greatest number of releases of a workspace. */
export const RELEASES_MAX = 10_000
/** Number of releases without a manifest that one registration looks at when there are too many. */
const UNFINISHED_READ = 100

/**
 * KEYS: record, index, releases without a manifest. ARGV: record, time of creation, slug, maximum. Returns the stored
 * record or, when there are too many releases, the slugs of the oldest that may have no manifest.
 */
const REGISTER = `
local record = redis.call('GET', KEYS[1])
if record then return record end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then
  return redis.call('ZRANGE', KEYS[3], 0, ${UNFINISHED_READ - 1})
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[3])
return ARGV[1]
`

/**
 * KEYS: index, releases without a manifest, then record and pointer of each release. ARGV: slug of each release. Removes the
 * first that has no manifest, and takes those that have one off the list.
 */
const REMOVE_UNFINISHED = `
for i, slug in ipairs(ARGV) do
  redis.call('ZREM', KEYS[2], slug)
  if redis.call('EXISTS', KEYS[2 * i + 2]) == 0 then
    redis.call('DEL', KEYS[2 * i + 1])
    redis.call('ZREM', KEYS[1], slug)
    return 1
  end
end
return 0
`

/**
 * KEYS: pointer, record, releases without a manifest. ARGV: pointer, sequence, slug. Returns whether the new pointer is
 * current, and the previous one.
 */
const REPLACE_MANIFEST = `
local before = redis.call('GET', KEYS[1])
if before and cjson.decode(before).sequence > tonumber(ARGV[2]) then return {0, before} end
if redis.call('EXISTS', KEYS[2]) == 0 then return {0, before} end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[3])
return {1, before}
`

/**
 * KEYS: record, pointer, index, releases without a manifest, stored maps. ARGV: slug. Returns whether there was a record. A
 * release takes its part of the stored maps with it, all if it was the last. Which ones does not matter: a map that is
 * forgotten is uploaded once more, and the manifest that names the maps of this release is not in Redis.
 */
const REMOVE = `
local removed = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
local left = redis.call('ZCARD', KEYS[3])
if left == 0 then redis.call('UNLINK', KEYS[5])
elseif removed == 1 then redis.call('SPOP', KEYS[5], math.ceil(redis.call('SCARD', KEYS[5]) / (left + 1))) end
return removed
`

/**
 * KEYS of REMOVE, then notes of removed releases. ARGV of REMOVE, then time of creation, sequence of the manifest (0 without one)
 * and note. Removes only this release. A Redis that is full takes the note, because the first command frees memory.
 */
const REMOVE_UNCHANGED = `
if tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or -1) ~= tonumber(ARGV[2]) then return 0 end
local pointer = redis.call('GET', KEYS[2])
if (pointer and cjson.decode(pointer).sequence or 0) ~= tonumber(ARGV[3]) then return 0 end
redis.call('DEL', KEYS[2])
redis.call('SADD', KEYS[6], ARGV[4])
${REMOVE}`

/** Creates the store of releases on the Redis of the directory. */
export function createReleaseStore(redis: Redis): ReleaseStore {
  return {
    ...createMapStore(redis),
    async register(release) {
      const record = JSON.stringify(releaseSchema.parse(release))
      const { workspaceId, slug, createdAt } = release
      const createdAtMs = Date.parse(createdAt)
      const key = releaseKeys.release(workspaceId, slug)
      const lists = [releaseKeys.releases(workspaceId), releaseKeys.unfinished(workspaceId)]
      for (let attempt = 0; attempt < REGISTER_ATTEMPTS; attempt++) {
        const stored = await redis.eval(REGISTER, 3, key, ...lists, record, createdAtMs, slug, RELEASES_MAX)
        if (!Array.isArray(stored)) return parseRecord(key, String(stored), releaseSchema)
        if (stored.length === 0) break
        await removeUnfinished(redis, workspaceId, stored as string[])
      }
      return 'too_many_releases'
    },
    async remove(workspaceId, slug) {
      const keys = removedKeys(workspaceId, slug)
      return (await redis.eval(REMOVE, keys.length, ...keys, slug)) === 1 ? 'removed' : 'absent'
    },
    async removeUnchanged({ workspaceId, slug, createdAt }, manifest, note) {
      const keys = [...removedKeys(workspaceId, slug), upkeepKeys.removedReleases]
      const args = [slug, Date.parse(createdAt), manifest?.sequence ?? 0, note]
      return (await redis.eval(REMOVE_UNCHANGED, keys.length, ...keys, ...args)) === 1 ? 'removed' : 'changed'
    },
    async release(workspaceId, slug) {
      const key = releaseKeys.release(workspaceId, slug)
      const record = await redis.get(key)
      return record === null ? undefined : parseRecord(key, record, releaseSchema)
    },
    async releases(workspaceId, { limit, after }) {
      const { createdAtMs = '', slug = '' } = after ?? {}
      const listed = await redis.eval(LIST_RELEASES, 1, releaseKeys.releases(workspaceId), limit + 1, createdAtMs, slug)
      const cursors = cursorsOf(listed as string[])
      const shown = cursors.slice(0, limit)
      return {
        releases: await readAll(redis, workspaceId, shown),
        end: cursors.length > limit ? shown.at(-1) : undefined,
      }
    },
    async manifest(workspaceId, slug) {
      const key = releaseKeys.manifest(workspaceId, slug)
      const record = await redis.get(key)
      return record === null ? undefined : parseRecord(key, record, manifestPointerSchema)
    },
    async replaceManifest(workspaceId, slug, pointer) {
      const record = JSON.stringify(manifestPointerSchema.parse(pointer))
      const key = releaseKeys.manifest(workspaceId, slug)
      const keys = [key, releaseKeys.release(workspaceId, slug), releaseKeys.unfinished(workspaceId)]
      const reply = await redis.eval(REPLACE_MANIFEST, keys.length, ...keys, record, pointer.sequence, slug)
      const [isCurrent, before] = reply as [number, string | null | undefined]
      return {
        isCurrent: isCurrent === 1,
        before: before ? parseRecord(key, before, manifestPointerSchema) : undefined,
      }
    },
  }
}

/** Attempts to make room for a release. Each looks at UNFINISHED_READ releases that may have a manifest by now. */
const REGISTER_ATTEMPTS = 5

async function removeUnfinished(redis: Redis, workspaceId: string, slugs: readonly string[]): Promise<void> {
  const records = slugs.flatMap(slug => [
    releaseKeys.release(workspaceId, slug),
    releaseKeys.manifest(workspaceId, slug),
  ])
  const keys = [releaseKeys.releases(workspaceId), releaseKeys.unfinished(workspaceId), ...records]
  await redis.eval(REMOVE_UNFINISHED, keys.length, ...keys, ...slugs)
}

/**
 * KEYS: index. ARGV: limit, then time and slug of the last release seen (empty for the beginning). If that release was
 * deleted, all releases of its millisecond are returned again, so that none is left out. Returns slugs and times
 * alternately.
 */
const LIST_RELEASES = `
local first = 0
if ARGV[3] ~= '' then
  local rank = redis.call('ZREVRANK', KEYS[1], ARGV[3])
  first = rank and rank + 1 or redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[2], '+inf')
end
return redis.call('ZREVRANGE', KEYS[1], first, first + ARGV[1] - 1, 'WITHSCORES')
`

function cursorsOf(listed: readonly string[]): ReleaseCursor[] {
  const cursors: ReleaseCursor[] = []
  for (let i = 0; i + 1 < listed.length; i += 2) {
    cursors.push({ slug: listed[i] as string, createdAtMs: Number(listed[i + 1]) })
  }
  return cursors
}

/** Reads the records of these releases and their pointers at one moment. */
async function readAll(
  redis: Redis,
  workspaceId: string,
  cursors: readonly ReleaseCursor[],
): Promise<ReleasePage['releases']> {
  if (cursors.length === 0) return []
  const keys = cursors.map(({ slug }) => releaseKeys.release(workspaceId, slug))
  const pointerKeys = cursors.map(({ slug }) => releaseKeys.manifest(workspaceId, slug))
  const records = await redis.mget([...keys, ...pointerKeys])
  return keys.flatMap((key, i) => {
    const [record, pointer] = [records[i], records[keys.length + i]]
    // The release was deleted after it was listed.
    if (!record) return []
    const manifest = pointer ? parseRecord(pointerKeys[i] ?? key, pointer, manifestPointerSchema) : undefined
    return [{ release: parseRecord(key, record, releaseSchema), manifest }]
  })
}

/**
 * Redis keys of releases, their index by time, the index by time of those that may have no manifest, their manifest pointers
 * and the set of stored maps that are known. A client may send any slug. Encoding it ensures that it cannot name a key of
 * another kind.
 */
export const releaseKeys = {
  release: (workspaceId: string, slug: string) =>
    `${DIRECTORY_ROOT}:workspace:${workspaceId}:release:${encodeURIComponent(slug)}`,
  releases: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:releases`,
  unfinished: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:unfinished-releases`,
  manifest: (workspaceId: string, slug: string) => `${releaseKeys.release(workspaceId, slug)}:manifest`,
  maps: mapKeys.stored,
}

const removedKeys = (workspaceId: string, slug: string) => [
  releaseKeys.release(workspaceId, slug),
  releaseKeys.manifest(workspaceId, slug),
  releaseKeys.releases(workspaceId),
  releaseKeys.unfinished(workspaceId),
  releaseKeys.maps(workspaceId),
]
