import type { Redis } from 'ioredis'
import type { SignedFile, SignSourceMaps } from '../../schemas/http/source-maps/schemas.ts'
import { HOUR_S } from '../../schemas/units.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { parseDeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { sourceMapKey, stagingKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { DeclaredMap } from '../../shared/queue/upload-keys.ts'
import { type Declared, declareMaps } from './declare-maps.ts'

/** The collaborators of `signMaps`. */
export interface SignMapsDeps {
  readonly releases: Pick<ReleaseStore, 'storedMaps'>
  readonly objects: Pick<ObjectStore, 'presignPut'>
  /** The Redis of the queues, where declared maps are stored. */
  readonly uploads: Redis
}

type DeclaredFile = SignSourceMaps['files'][number]

/** The lifetime of a presigned address. */
const EXPIRES_IN_S = HOUR_S

/** The number of addresses signed in one turn of the event loop. Signing 256 takes about 6 ms. */
const FILES_PER_TURN = 256

/**
 * Declares maps for a release. Each map gets an address that takes exactly its size, or `alreadyUploaded` if its bytes
 * were verified in this workspace before. Returns the limit, and declares nothing, when the release would have too many paths
 * or the workspace too many bytes to upload or too much memory for uploads.
 */
export async function signMaps(
  deps: SignMapsDeps,
  release: ReleaseKey,
  files: readonly DeclaredFile[],
): Promise<readonly SignedFile[] | Exclude<Declared, 'declared'>> {
  const digests = files.map(sha256Of)
  const stored = await deps.releases.storedMaps(
    release.workspaceId,
    digests.filter(digest => digest !== undefined),
  )
  const declared = new Map<string, DeclaredMap>()
  const signed: SignedFile[] = []
  for (const [i, file] of files.entries()) {
    if (i > 0 && i % FILES_PER_TURN === 0) await new Promise(resolve => setImmediate(resolve))
    const { path, size, hash } = file
    const sha256 = digests[i]
    if (sha256 !== undefined && stored.has(sha256)) {
      declared.set(path, { size, hash, sha256 })
      signed.push({ path, objectKey: sourceMapKey(release.workspaceId, sha256), alreadyUploaded: true })
    } else {
      const key = stagingKey({ ...release, path }, file)
      const { url, expiresAtMs } = await deps.objects.presignPut(key, {
        contentLength: size,
        expiresInS: EXPIRES_IN_S,
      })
      declared.set(path, { size, hash, stagingKey: key })
      signed.push({ path, objectKey: key, uploadUrl: url, expiresAt: new Date(expiresAtMs).toISOString() })
    }
  }
  const outcome = await declareMaps(deps.uploads, release, declared)
  return outcome === 'declared' ? signed : outcome
}

function sha256Of({ hash }: DeclaredFile): string | undefined {
  const parsed = parseDeclaredHash(hash)
  return parsed?.algorithm === 'sha256' ? parsed.hex : undefined
}
