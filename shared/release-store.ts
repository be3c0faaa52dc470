import type { Redis } from 'ioredis'
import type { z } from 'zod'
import { type ManifestPointer, manifestPointerSchema, type Release, releaseSchema } from '../schemas/control.ts'
import { ControlRecordError } from './control-store.ts'

/** Releases of a workspace, and which manifest of each holds. */
export interface ReleaseStore {
  /** The release of this slug as it was registered first: it never changes. */
  register(release: Release): Promise<Release>
  release(workspaceId: string, slug: string): Promise<Release | undefined>
  /** The last registered first; `after` is the last one of the page before. */
  releases(workspaceId: string, page: { limit: number; after?: ReleasePlace | undefined }): Promise<Release[]>
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

export interface ReleasePlace {
  readonly createdAtMs: number
  readonly slug: string
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

/** Keeps releases in the control store's Redis. */
export function createReleaseStore(redis: Redis): ReleaseStore {
  return {
    async register(release) {
      const record = JSON.stringify(releaseSchema.parse(release))
      const { workspaceId, slug, createdAt } = release
      const createdAtMs = Date.parse(createdAt)
      const holding = await redis.eval(
        REGISTER,
        2,
        keys.release(workspaceId, slug),
        keys.releases(workspaceId),
        record,
        createdAtMs,
        slug,
      )
      return parseRecord(slug, String(holding), releaseSchema)
    },
    async release(workspaceId, slug) {
      const record = await redis.get(keys.release(workspaceId, slug))
      return record === null ? undefined : parseRecord(slug, record, releaseSchema)
    },
    async releases(workspaceId, { limit, after }) {
      const slugs = await redis.eval(
        LIST_RELEASES,
        1,
        keys.releases(workspaceId),
        limit,
        after?.createdAtMs ?? '+inf',
        after?.slug ?? '',
      )
      const found = await Promise.all((slugs as string[]).map(slug => this.release(workspaceId, slug)))
      return found.filter(release => release !== undefined)
    },
    async manifest(workspaceId, slug) {
      const record = await redis.get(keys.manifest(workspaceId, slug))
      return record === null ? undefined : parseRecord(slug, record, manifestPointerSchema)
    },
    async replaceManifest(workspaceId, slug, pointer) {
      const record = JSON.stringify(manifestPointerSchema.parse(pointer))
      const reply = await redis.eval(REPLACE_MANIFEST, 1, keys.manifest(workspaceId, slug), record, pointer.sequence)
      const [holds, before] = reply as [number, string | null | undefined]
      return { holds: holds === 1, before: before ? parseRecord(slug, before, manifestPointerSchema) : undefined }
    },
    async storedMaps(workspaceId, sha256s) {
      if (sha256s.length === 0) return new Set()
      const members = sha256s.map(sha256 => Buffer.from(sha256, 'hex'))
      const flags = await redis.smismember(keys.maps(workspaceId), ...members)
      return new Set(sha256s.filter((_, i) => flags[i] === 1))
    },
    async addStoredMaps(workspaceId, sha256s) {
      for (const page of pages(sha256s)) await redis.sadd(keys.maps(workspaceId), ...page)
    },
    async removeStoredMaps(workspaceId, sha256s) {
      for (const page of pages(sha256s)) await redis.srem(keys.maps(workspaceId), ...page)
    },
  }
}

/** KEYS index; ARGV limit, created at and slug of the last one seen. Of one millisecond, by slug downwards. */
const LIST_RELEASES = `
local limit = tonumber(ARGV[1])
local found = {}
local offset = 0
while #found < limit do
  local page = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[2], '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
  if #page == 0 then break end
  for i = 1, #page, 2 do
    local isAfter = ARGV[3] == '' or tonumber(page[i + 1]) < tonumber(ARGV[2]) or page[i] < ARGV[3]
    if isAfter and #found < limit then table.insert(found, page[i]) end
  end
  offset = offset + limit
end
return found
`

const keys = {
  release: (workspaceId: string, slug: string) => `penstock:workspace:${workspaceId}:release:${slug}`,
  releases: (workspaceId: string) => `penstock:workspace:${workspaceId}:releases`,
  manifest: (workspaceId: string, slug: string) => `penstock:workspace:${workspaceId}:release:${slug}:manifest`,
  maps: (workspaceId: string) => `penstock:workspace:${workspaceId}:stored-maps`,
}

function parseRecord<S extends z.ZodType>(slug: string, text: string, schema: S): z.infer<S> {
  const result = schema.safeParse(JSON.parse(text))
  if (!result.success) throw new ControlRecordError(`release ${slug}: ${result.error.message}`)
  return result.data
}

/** Hashes are kept as their 32 bytes: half of what hex would take. */
function* pages(sha256s: readonly string[]): Generator<Buffer[]> {
  const PAGE = 1_000
  for (let i = 0; i < sha256s.length; i += PAGE) {
    yield sha256s.slice(i, i + PAGE).map(sha256 => Buffer.from(sha256, 'hex'))
  }
}
