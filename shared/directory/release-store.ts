import type { Redis } from 'ioredis'
import {
  type ManifestPointer,
  manifestPointerSchema,
  type Release,
  releaseSchema,
} from '../../schemas/records/directory.ts'
import { decideOnce, NOTHING, type Once } from './creations.ts'
import { directoryScript } from './directory-script.ts'
import { createMapStore, type MapStore } from './maps/map-store.ts'
import { DIRECTORY_ROOT, mapKeys, parseRecord, upkeepKeys } from './record.ts'
import type { Command, Decision } from './transaction.ts'

/** Stores the releases of a workspace, and which manifest of each is current. */
export interface ReleaseStore extends MapStore {
  /**
   * Registers a release and returns it. One that is registered already takes the commit and the metadata that are given, and
   * keeps its time of creation. At RELEASES_MAX the oldest release without a manifest is removed. If all of them have one, the
   * release is refused. `once` is given if the client may repeat the registration.
   */
  register(release: Release, once?: Once): Promise<Release | 'too_many_releases'>
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

const REMOVE_UNFINISHED = directoryScript('remove-unfinished')
const REPLACE_MANIFEST = directoryScript('replace-manifest')
const REMOVE = directoryScript('remove-release')
const LIST_RELEASES = directoryScript('list-releases')

/** Creates the store of releases on the Redis of the directory. */
export function createReleaseStore(redis: Redis): ReleaseStore {
  return {
    ...createMapStore(redis),
    async register(release, once) {
      const { workspaceId } = release
      for (let attempt = 0; attempt < REGISTER_ATTEMPTS; attempt++) {
        const registered = await decideOnce(redis, once, () => decideRelease(redis, release))
        if (registered !== 'too_many_releases') return registered
        const oldest = await redis.zrange(releaseKeys.unfinished(workspaceId), '0', String(UNFINISHED_READ - 1))
        if (oldest.length === 0) break
        await removeUnfinished(redis, workspaceId, oldest)
      }
      return 'too_many_releases'
    },
    async remove(workspaceId, slug) {
      return (await REMOVE.run(redis, removedKeys(workspaceId, slug), [slug])) === 1 ? 'removed' : 'absent'
    },
    async removeUnchanged({ workspaceId, slug, createdAt }, manifest, note) {
      const keys = [...removedKeys(workspaceId, slug), upkeepKeys.removedReleases]
      const args = [slug, Date.parse(createdAt), manifest?.sequence ?? 0, note]
      return (await REMOVE.run(redis, keys, args)) === 1 ? 'removed' : 'changed'
    },
    async release(workspaceId, slug) {
      const key = releaseKeys.release(workspaceId, slug)
      const record = await redis.get(key)
      return record === null ? undefined : parseRecord(key, record, releaseSchema)
    },
    async releases(workspaceId, { limit, after }) {
      const { createdAtMs = '', slug = '' } = after ?? {}
      const listed = await LIST_RELEASES.run(redis, [releaseKeys.releases(workspaceId)], [limit + 1, createdAtMs, slug])
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
      const reply = await REPLACE_MANIFEST.run(redis, keys, [record, pointer.sequence, slug])
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

/** Decides how a registration would change the current state. */
async function decideRelease(redis: Redis, release: Release): Promise<Decision<Release | 'too_many_releases'>> {
  const { workspaceId, slug, createdAt, commit, metadata } = release
  const key = releaseKeys.release(workspaceId, slug)
  const text = await redis.get(key)
  const before = text === null ? undefined : parseRecord(key, text, releaseSchema)
  const [index, unfinished] = [releaseKeys.releases(workspaceId), releaseKeys.unfinished(workspaceId)]
  if (before === undefined && (await redis.zcard(index)) >= RELEASES_MAX) return { result: 'too_many_releases' }
  const result = before
    ? { ...before, commit: commit ?? before.commit, metadata: metadata ?? before.metadata }
    : releaseSchema.parse(release)
  const record = JSON.stringify(result)
  if (record === text) return { result, transaction: NOTHING }
  const createdAtMs = Date.parse(createdAt)
  const added: Command[] = before
    ? []
    : [
        ['ZADD', index, createdAtMs, slug],
        ['ZADD', unfinished, createdAtMs, slug],
      ]
  return { result, transaction: { guards: [['GET', key, text ?? '']], commands: [['SET', key, record], ...added] } }
}

async function removeUnfinished(redis: Redis, workspaceId: string, slugs: readonly string[]): Promise<void> {
  const records = slugs.flatMap(slug => [
    releaseKeys.release(workspaceId, slug),
    releaseKeys.manifest(workspaceId, slug),
  ])
  const keys = [releaseKeys.releases(workspaceId), releaseKeys.unfinished(workspaceId), ...records]
  await REMOVE_UNFINISHED.run(redis, keys, slugs)
}

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
