import type { Redis } from 'ioredis'
import { type Manifest, type ManifestFile, manifestSchema } from '../../schemas/records/manifest.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { parseDeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestPrefix, partKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import type { DeclaredMap, UploadKeys } from '../../shared/queue/upload-keys.ts'
import { sealParts, unsealParts } from './part-claims.ts'

export interface SettleDeps {
  readonly place: ReleaseKey
  readonly redis: Redis
  readonly keys: UploadKeys
  readonly objects: Pick<ObjectStore, 'get' | 'list' | 'deleteMany'>
  readonly releases: Pick<ReleaseStore, 'manifest'>
}

const PAGE_PATHS = 500
/** 100,000 entries of a body of 16 MiB, and what was found of each. */
const MANIFEST_MAX_BYTES = 64 * 1024 * 1024

/**
 * Puts in order what a manifest leaves behind once it holds: claims of the parts it is made of live on, those of the
 * manifest before come to their end, what was uploaded is deleted where it is stored as a map, and so are manifests
 * older than the one before. All of it follows from the stores alone, so that it may be cut short and begun again.
 */
export async function settleUploads(deps: SettleDeps, manifest: Manifest): Promise<void> {
  await consumeUploads(deps, manifest)
  await retireManifests(deps, manifest)
  const pointer = await deps.releases.manifest(deps.place.workspaceId, deps.place.slug)
  if (pointer === undefined || pointer.sequence <= manifest.sequence) return
  // A later one holds by now, and may have come to its end before what was sealed here: it cannot have seen that.
  const later = await readManifest(deps.objects, pointer.objectKey)
  if (later) await unsealLeftOut(deps, manifest.files, later)
}

/** The manifest of this key; undefined when it was deleted. */
export async function readManifest(objects: Pick<ObjectStore, 'get'>, key: string): Promise<Manifest | undefined> {
  const object = await objects.get(key, MANIFEST_MAX_BYTES)
  return object && manifestSchema.parse(JSON.parse(object.body.toString()))
}

async function consumeUploads(deps: SettleDeps, manifest: Manifest): Promise<void> {
  const { place, redis, keys, objects } = deps
  for (const page of pagesOf(manifest.files, PAGE_PATHS)) {
    const maps = page.map(({ path, sha256 }) => ({ key: keys.parts(path), sha256 }))
    const counts = await sealParts(redis, manifest.sequence, maps)
    const declared = await redis.hmget(keys.signed, ...page.map(file => file.path))
    await objects.deleteMany(consumedKeys(place, page, counts, declared))
  }
}

/** What was sent of these maps. */
function* consumedKeys(
  place: ReleaseKey,
  files: readonly ManifestFile[],
  partCounts: readonly number[],
  declared: readonly (string | null)[],
): Generator<string> {
  for (const [i, file] of files.entries()) {
    for (let part = 0; part < (partCounts[i] ?? 0); part++) yield partKey({ ...place, path: file.path }, part)
    const staged = stagedObject(file, declared[i])
    if (staged !== undefined) yield staged
  }
}

/** Where the upload of this very map was put; one that was declared since for another map is not to be touched. */
function stagedObject(file: ManifestFile, record: string | null | undefined): string | undefined {
  if (!record) return undefined
  const { hash, stagingKey } = JSON.parse(record) as DeclaredMap
  const isSame = hash === file.hash || parseDeclaredHash(hash)?.hex === file.sha256
  return isSame ? stagingKey : undefined
}

async function retireManifests(deps: SettleDeps, manifest: Manifest): Promise<void> {
  const { place, objects } = deps
  const prefix = manifestPrefix(place.workspaceId, place.slug)
  const older: { key: string; sequence: number }[] = []
  for await (const page of objects.list(prefix)) {
    for (const { key } of page) {
      const sequence = Number.parseInt(key.slice(prefix.length), 10)
      if (sequence < manifest.sequence) older.push({ key, sequence })
    }
  }
  older.sort((a, b) => b.sequence - a.sequence)
  for (const { key } of older) {
    const before = await readManifest(objects, key)
    if (before) await unsealLeftOut(deps, before.files, manifest)
  }
  // The one before stays for those who have just read its name.
  await objects.deleteMany(older.slice(1).map(({ key }) => key))
}

async function unsealLeftOut(
  { redis, keys }: SettleDeps,
  files: readonly ManifestFile[],
  holding: Manifest,
): Promise<void> {
  const named = new Map(holding.files.map(file => [file.path, file.sha256]))
  const leftOut = files.filter(file => named.get(file.path) !== file.sha256)
  for (const page of pagesOf(leftOut, PAGE_PATHS)) {
    await unsealParts(
      redis,
      holding.sequence,
      page.map(file => keys.parts(file.path)),
    )
  }
}
