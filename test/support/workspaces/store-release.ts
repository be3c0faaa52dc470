import { hash } from 'node:crypto'
import type { Manifest } from '../../../schemas/records/manifest.ts'
import type { ReleaseStore } from '../../../shared/directory/release-store.ts'
import { releaseSlugOf } from '../../../shared/ids/release-slug.ts'
import { manifestKey, sourceMapKey } from '../../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'

/** Workspace and surface of a release. */
export interface ReleaseOwner {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** Source map to store. */
export interface UploadedMap {
  readonly path: string
  readonly map: Buffer
  readonly chunkUrl?: string
  readonly debugId?: string
}

/** Stores maps and has a manifest of them hold, as the completion of an upload does. Returns the slug of the release. */
export async function storeRelease(
  { objects, releases }: { objects: ObjectStore; releases: ReleaseStore },
  owner: ReleaseOwner,
  name: string,
  maps: readonly UploadedMap[],
  sequence = 1,
): Promise<string> {
  const slug = releaseSlugOf({ ...owner, name })
  const completedAt = new Date().toISOString()
  await releases.register({ version: 1, slug, ...owner, name, commit: null, metadata: null, createdAt: completedAt })
  const files: Manifest['files'] = []
  for (const { path, map, chunkUrl = '', debugId = '' } of maps) {
    const sha256 = hash('sha256', map)
    await objects.put(sourceMapKey(owner.workspaceId, sha256), map, { contentType: 'application/json' })
    files.push({ path, hash: sha256, debugId, chunkUrl, sha256, size: map.length, verified: true })
  }
  const manifest: Manifest = { version: 1, releaseSlug: slug, sequence, files, sourceFileCount: 1, completedAt }
  const objectKey = manifestKey(owner.workspaceId, slug, sequence)
  await objects.put(objectKey, Buffer.from(JSON.stringify(manifest)), { contentType: 'application/json' })
  const counters = { sourceMapCount: files.length, sourceFileCount: 1 }
  await releases.replaceManifest(owner.workspaceId, slug, { version: 1, sequence, objectKey, ...counters, completedAt })
  return slug
}
