import type { ManifestPointer, Release } from '../../../schemas/records/directory.ts'
import type { Manifest, ManifestFile } from '../../../schemas/records/manifest.ts'
import type { ReleaseStore } from '../../../shared/directory/release-store.ts'
import { manifestKey } from '../../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'

/** A file of a manifest, as different from its neighbours as its number makes it. */
export function manifestFile(number: number, change: Partial<ManifestFile> = {}): ManifestFile {
  return {
    path: `assets/chunk-${number}.js.map`,
    hash: number.toString(16).padStart(64, '0'),
    debugId: `debug-${number}`,
    chunkUrl: `https://cdn.example/assets/chunk-${number}.js`,
    sha256: number.toString(16).padStart(64, '0'),
    size: 1_000 + number,
    verified: number % 2 === 0,
    ...change,
  }
}

/** Registers a release as the edge does. */
export async function registerRelease(
  store: ReleaseStore,
  release: Pick<Release, 'slug'> & Partial<Release>,
): Promise<Release> {
  const registered = await store.register({
    version: 1,
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    name: '1.0.0',
    commit: null,
    metadata: null,
    createdAt: new Date().toISOString(),
    ...release,
  })
  if (registered === 'too_many_releases') throw new Error('the workspace has too many releases')
  return registered
}

/** Writes a manifest and has it hold, as a completion does; what it replaces is deleted. */
export async function completeRelease(
  { store, objects }: { store: ReleaseStore; objects: Pick<ObjectStore, 'put' | 'deleteMany'> },
  { workspaceId, slug }: Pick<Release, 'workspaceId' | 'slug'>,
  { sequence, files, sourceFileCount = 7 }: { sequence: number; files: ManifestFile[]; sourceFileCount?: number },
): Promise<ManifestPointer> {
  const completedAt = new Date(Date.UTC(2026, 0, 1) + sequence).toISOString()
  const objectKey = manifestKey(workspaceId, slug, sequence)
  const manifest: Manifest = { version: 1, releaseSlug: slug, sequence, files, sourceFileCount, completedAt }
  await objects.put(objectKey, Buffer.from(JSON.stringify(manifest)), { contentType: 'application/json' })
  const counters = { sourceMapCount: files.length, sourceFileCount }
  const pointer: ManifestPointer = { version: 1, sequence, objectKey, ...counters, completedAt }
  const { before } = await store.replaceManifest(workspaceId, slug, pointer)
  if (before) await objects.deleteMany([before.objectKey])
  return pointer
}
