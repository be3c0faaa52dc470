import { type Manifest, type ManifestFile, manifestSchema } from '../../schemas/records/manifest.ts'
import { MIB } from '../../schemas/units.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { parseDeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestPrefix, manifestSequence, partKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { removeUploads } from '../../shared/queue/remove-uploads.ts'
import { budgetMember, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { type DeclaredMap, stagedKeys, stagedMember } from '../../shared/queue/upload-keys.ts'
import { type ReleaseClaims, sealParts, unsealParts } from './part-claims.ts'

/** Dependencies of settling the uploads of a release. */
interface SettleDeps extends ReleaseClaims {
  readonly objects: Pick<ObjectStore, 'get' | 'list' | 'deleteMany'>
  readonly releases: Pick<ReleaseStore, 'manifest'>
}

const PAGE_PATHS = 500
/** Bytes of a manifest: 100,000 entries from a body of 16 MiB, and what was found for each. */
const MANIFEST_MAX_BYTES = 64 * MIB

/**
 * Cleans up after a manifest became current. Claims of the parts of its maps are kept; claims of the previous manifest
 * expire. Uploads that are stored as maps are deleted, and so are manifests older than the previous one. All of this
 * follows from the state of the stores, so it may be interrupted and repeated.
 */
export async function settleUploads(deps: SettleDeps, manifest: Manifest): Promise<void> {
  await consumeUploads(deps, manifest)
  await retireManifests(deps, manifest)
  const pointer = await deps.releases.manifest(deps.releaseKey.workspaceId, deps.releaseKey.slug)
  // The release was deleted meanwhile, and its deletion cannot have seen the claims that were sealed here.
  if (pointer === undefined) return removeUploads(deps.redis, deps.releaseKey)
  if (pointer.sequence <= manifest.sequence) return
  // A later manifest is current by now. It may have settled before the claims were sealed here, and cannot have seen them.
  const later = await readManifest(deps.objects, pointer.objectKey)
  if (later) await unsealLeftOut(deps, manifest.files, later)
}

/** Reads the manifest with this key. Returns undefined if it was deleted. */
export async function readManifest(objects: Pick<ObjectStore, 'get'>, key: string): Promise<Manifest | undefined> {
  const object = await objects.get(key, MANIFEST_MAX_BYTES)
  return object && manifestSchema.parse(JSON.parse(object.body.toString()))
}

async function consumeUploads(deps: SettleDeps, manifest: Manifest): Promise<void> {
  const { releaseKey, redis, keys, objects } = deps
  for (const page of pagesOf(manifest.files, PAGE_PATHS)) {
    const counts = await sealParts(deps, manifest.sequence, page)
    const declared = await redis.hmget(keys.signed, ...page.map(file => file.path))
    const staged = page.flatMap((file, i) => stagedObject(file, declared[i]) ?? [])
    await objects.deleteMany(consumedKeys(releaseKey, page, counts, staged))
    await forgetDeclared(deps, page, declared, staged)
  }
}

/** Yields the keys of the objects that were uploaded for these maps. */
function* consumedKeys(
  releaseKey: ReleaseKey,
  files: readonly ManifestFile[],
  partCounts: readonly number[],
  staged: readonly StagedMap[],
): Generator<string> {
  for (const [i, file] of files.entries()) {
    for (let part = 0; part < (partCounts[i] ?? 0); part++) yield partKey({ ...releaseKey, path: file.path }, part)
  }
  for (const { stagingKey } of staged) yield stagingKey
}

type StagedMap = Parameters<typeof stagedMember>[0]

/** Returns the staged object of this map. That of another map that was declared since must not be deleted. */
function stagedObject(file: ManifestFile, record: string | null | undefined): StagedMap | undefined {
  if (!record) return undefined
  const { hash, stagingKey, size } = JSON.parse(record) as DeclaredMap
  const isSame = hash === file.hash || parseDeclaredHash(hash)?.hex === file.sha256
  return isSame && stagingKey !== undefined ? { stagingKey, size } : undefined
}

const FORGET_DECLARED = queueScript('uploads/forget-declared')

/**
 * Forgets the staged maps, which makes room for other uploads of the workspace, and the declared paths whose maps this manifest
 * names, unless they were declared with another map since. Without this, a release that is never idle for 24 h would keep all of
 * them. A build that has declared the same map and is not complete yet finds it by its SHA-256, or in this manifest. Another hash
 * would not find it under a later manifest, so its path stays.
 */
async function forgetDeclared(
  { redis, keys, releaseKey }: SettleDeps,
  files: readonly ManifestFile[],
  records: readonly (string | null)[],
  staged: readonly StagedMap[],
): Promise<void> {
  const settled = files.flatMap((file, i) => {
    const record = records[i]
    if (!record) return []
    const declared = parseDeclaredHash((JSON.parse(record) as DeclaredMap).hash)
    return declared?.algorithm === 'sha256' && declared.hex === file.sha256 ? [file.path, record] : []
  })
  if (staged.length + settled.length === 0) return
  const { objects, bytes } = stagedKeys(releaseKey.workspaceId)
  const budget = uploadBudgetKeys(releaseKey.workspaceId)
  const args = [budgetMember(releaseKey), staged.length, ...staged.map(stagedMember), ...settled]
  await FORGET_DECLARED.run(redis, [objects, bytes, keys.signed, budget.sums], args)
}

async function retireManifests(deps: SettleDeps, manifest: Manifest): Promise<void> {
  const { releaseKey, objects } = deps
  const prefix = manifestPrefix(releaseKey.workspaceId, releaseKey.slug)
  const older: { key: string; sequence: number }[] = []
  for await (const page of objects.list(prefix)) {
    for (const { key } of page) {
      const sequence = manifestSequence(key)
      if (sequence < manifest.sequence) older.push({ key, sequence })
    }
  }
  older.sort((a, b) => b.sequence - a.sequence)
  for (const { key } of older) {
    const before = await readManifest(objects, key)
    if (before) await unsealLeftOut(deps, before.files, manifest)
  }
  // The previous manifest stays for readers that have just read its key.
  await objects.deleteMany(older.slice(1).map(({ key }) => key))
}

async function unsealLeftOut(deps: SettleDeps, files: readonly ManifestFile[], current: Manifest): Promise<void> {
  const named = new Map(current.files.map(file => [file.path, file.sha256]))
  const leftOut = files.filter(file => named.get(file.path) !== file.sha256)
  for (const page of pagesOf(leftOut, PAGE_PATHS)) {
    await unsealParts(
      deps,
      current.sequence,
      page.map(file => file.path),
    )
  }
}
