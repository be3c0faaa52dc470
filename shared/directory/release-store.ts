import type { Redis } from 'ioredis'
import {
  type ManifestPointer,
  manifestPointerSchema,
  type Release,
  releaseSchema,
} from '../../schemas/records/directory.ts'
import { pagesOf } from '../concurrency/pages.ts'
import { parseRecord } from './record.ts'

/** Releases of a workspace, and which manifest of each holds. */
export interface ReleaseStore {
  /** The release of this slug as it was registered first: it never changes. */
  register(release: Release): Promise<Release>
  release(workspaceId: string, slug: string): Promise<Release | undefined>
  /** The last registered first; `after` is where the page before ended. */
  releases(workspaceId: string, page: { limit: number; after?: ReleaseCursor | undefined }): Promise<ReleasePage>
  manifest(workspaceId: string, slug: string): Promise<ManifestPointer | undefined>
  /**
   * Has a manifest hold, unless one of a later completion does. Answers with the pointer before, and whether this one
   * holds now (also when it did already: a repeat).
   */
  replaceManifest(
    workspaceId: string,
    slug: string,
    pointer: ManifestPointer,
  ): Promise<{ holds: boolean; before: ManifestPointer | undefined }>
  /** Those of these maps (SHA-256 in hex) whose bytes were verified and stored in this workspace. */
  storedMaps(workspaceId: string, sha256s: readonly string[]): Promise<Set<string>>
  addStoredMaps(workspaceId: string, sha256s: readonly string[]): Promise<void>
  /** The objects of these maps were found to be gone. */
  removeStoredMaps(workspaceId: string, sha256s: readonly string[]): Promise<void>
}

export interface ReleaseCursor {
  readonly createdAtMs: number
  readonly slug: string
}

export interface ReleasePage {
  /** Each with its manifest as it held at one moment for all of them. */
  readonly releases: readonly { readonly release: Release; readonly manifest: ManifestPointer | undefined }[]
  /** Undefined on the last page. */
  readonly end: ReleaseCursor | undefined
}

/** KEYS record, index; ARGV record, created at, slug. Answers the record that holds. */
const REGISTER = `
local record = redis.call('GET', KEYS[1])
if record then return record end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])
return ARGV[1]
`

/** KEYS pointer; ARGV pointer, sequence. Answers whether the new one holds, and the one before. */
const REPLACE_MANIFEST = `
local before = redis.call('GET', KEYS[1])
if before and cjson.decode(before).sequence > tonumber(ARGV[2]) then return {0, before} end
redis.call('SET', KEYS[1], ARGV[1])
return {1, before}
`

/** Keeps releases in the directory's Redis. */
export function createReleaseStore(redis: Redis): ReleaseStore {
  return {
    async register(release) {
      const record = JSON.stringify(releaseSchema.parse(release))
      const { workspaceId, slug, createdAt } = release
      const createdAtMs = Date.parse(createdAt)
      const holding = await redis.eval(
        REGISTER,
        2,
        releaseKeys.release(workspaceId, slug),
        releaseKeys.releases(workspaceId),
        record,
        createdAtMs,
        slug,
      )
      return parseRecord(releaseKeys.release(workspaceId, slug), String(holding), releaseSchema)
    },
    async release(workspaceId, slug) {
      const key = releaseKeys.release(workspaceId, slug)
      const record = await redis.get(key)
      return record === null ? undefined : parseRecord(key, record, releaseSchema)
    },
    async releases(workspaceId, { limit, after }) {
      const { createdAtMs = '', slug = '' } = after ?? {}
      const listed = await redis.eval(LIST_RELEASES, 1, releaseKeys.releases(workspaceId), limit + 1, createdAtMs, slug)
      const places = placesOf(listed as string[])
      const shown = places.slice(0, limit)
      return {
        releases: await readAll(redis, workspaceId, shown),
        end: places.length > limit ? shown.at(-1) : undefined,
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
      const reply = await redis.eval(REPLACE_MANIFEST, 1, key, record, pointer.sequence)
      const [holds, before] = reply as [number, string | null | undefined]
      return { holds: holds === 1, before: before ? parseRecord(key, before, manifestPointerSchema) : undefined }
    },
    async storedMaps(workspaceId, sha256s) {
      if (sha256s.length === 0) return new Set()
      const members = sha256s.map(sha256 => Buffer.from(sha256, 'hex'))
      const flags = await redis.smismember(releaseKeys.maps(workspaceId), ...members)
      return new Set(sha256s.filter((_, i) => flags[i] === 1))
    },
    async addStoredMaps(workspaceId, sha256s) {
      for (const page of pagesOf(sha256s, STORED_MAPS_PAGE))
        await redis.sadd(releaseKeys.maps(workspaceId), ...page.map(digestBytes))
    },
    async removeStoredMaps(workspaceId, sha256s) {
      for (const page of pagesOf(sha256s, STORED_MAPS_PAGE))
        await redis.srem(releaseKeys.maps(workspaceId), ...page.map(digestBytes))
    },
  }
}

/**
 * KEYS index; ARGV how many, and time and slug of the last one seen (empty for the beginning). Should that one be gone,
 * those of its millisecond come again: none is left out. Answers slugs and times by turns.
 */
const LIST_RELEASES = `
local first = 0
if ARGV[3] ~= '' then
  local rank = redis.call('ZREVRANK', KEYS[1], ARGV[3])
  first = rank and rank + 1 or redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[2], '+inf')
end
return redis.call('ZREVRANGE', KEYS[1], first, first + ARGV[1] - 1, 'WITHSCORES')
`

function placesOf(listed: readonly string[]): ReleaseCursor[] {
  const places: ReleaseCursor[] = []
  for (let i = 0; i + 1 < listed.length; i += 2) {
    places.push({ slug: listed[i] as string, createdAtMs: Number(listed[i + 1]) })
  }
  return places
}

/** The records of these releases and their pointers, as they stand at one moment. */
async function readAll(
  redis: Redis,
  workspaceId: string,
  places: readonly ReleaseCursor[],
): Promise<ReleasePage['releases']> {
  if (places.length === 0) return []
  const keys = places.map(({ slug }) => releaseKeys.release(workspaceId, slug))
  const pointerKeys = places.map(({ slug }) => releaseKeys.manifest(workspaceId, slug))
  const records = await redis.mget([...keys, ...pointerKeys])
  return keys.flatMap((key, i) => {
    const [record, pointer] = [records[i], records[keys.length + i]]
    // Deleted since it was listed.
    if (!record) return []
    const manifest = pointer ? parseRecord(pointerKeys[i] ?? key, pointer, manifestPointerSchema) : undefined
    return [{ release: parseRecord(key, record, releaseSchema), manifest }]
  })
}

/**
 * Where releases, their index by time, their manifest pointers and the set of stored maps are. A client may ask for any
 * slug: encoded, that of no release is the name of another key.
 */
export const releaseKeys = {
  release: (workspaceId: string, slug: string) =>
    `penstock:workspace:${workspaceId}:release:${encodeURIComponent(slug)}`,
  releases: (workspaceId: string) => `penstock:workspace:${workspaceId}:releases`,
  manifest: (workspaceId: string, slug: string) => `${releaseKeys.release(workspaceId, slug)}:manifest`,
  maps: (workspaceId: string) => `penstock:workspace:${workspaceId}:stored-maps`,
}

/** Members that one command adds to or removes from the set of stored maps. */
const STORED_MAPS_PAGE = 1_000

/** Digests are stored as their 32 bytes, half of the size of their hex text. */
const digestBytes = (sha256: string) => Buffer.from(sha256, 'hex')
