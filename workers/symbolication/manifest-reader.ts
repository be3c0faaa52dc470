import type { ManifestPointer } from '../../schemas/records/directory.ts'
import { type Manifest, type ManifestFile, manifestSchema } from '../../schemas/records/manifest.ts'
import { MIB } from '../../schemas/units.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { CacheCounts } from '../../shared/runtime/cache-counts.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { canonicalDebugId } from '../exceptions/debug-ids.ts'
import { createByteCache } from './byte-cache.ts'
import { type ChunkMatcher, createChunkMatcher } from './match-chunk.ts'

const OBJECT_LIMIT_BYTES = 64 * MIB
/** Limit in bytes of the objects. In memory manifests take about five times as much. */
const CACHE_LIMIT_BYTES = 16 * MIB

/** The current manifest of a release, with its look-up tables. */
export interface LoadedManifest {
  readonly manifest: Manifest
  readonly chunks: ChunkMatcher<ManifestFile>
  readonly byDebugId: ReadonlyMap<string, ManifestFile>
  readonly bytes: number
}

/** Reads the current manifests of releases. */
export interface ManifestReader {
  /** Returns undefined if the release has no readable manifest. Throws TransientErrors. */
  read(workspaceId: string, slug: string): Promise<LoadedManifest | undefined>
}

/**
 * Creates a reader with a cache of manifests. It looks up the current pointer for each read: after a manifest was
 * replaced, no stack may be resolved by the previous one (see `resolve-release.ts`).
 */
export function createManifestReader(deps: {
  readonly releases: Pick<ReleaseStore, 'manifest'>
  readonly objects: Pick<ObjectStore, 'get'>
  readonly logger: Logger
}): ManifestReader & CacheCounts {
  const cache = createByteCache<LoadedManifest>(CACHE_LIMIT_BYTES)
  const counts = { hits: 0, misses: 0 }

  async function fetch({ objectKey }: ManifestPointer): Promise<LoadedManifest | undefined> {
    const object = await deps.objects.get(objectKey, OBJECT_LIMIT_BYTES).catch(error => {
      if (error instanceof PermanentError) return undefined
      throw error
    })
    const manifest = object && manifestSchema.safeParse(parseJson(object.body.toString()))
    if (!manifest?.success) {
      deps.logger.warn({ objectKey, absent: object === undefined }, 'a manifest is unreadable')
      return undefined
    }
    const { files } = manifest.data
    return {
      manifest: manifest.data,
      chunks: createChunkMatcher(files),
      byDebugId: filesByDebugId(files),
      bytes: object?.size ?? 0,
    }
  }

  return {
    get hits() {
      return counts.hits
    },
    get misses() {
      return counts.misses
    },
    async read(workspaceId, slug) {
      const pointer = await deps.releases.manifest(workspaceId, slug)
      if (pointer === undefined) return undefined
      const known = cache.get(pointer.objectKey)
      if (known !== undefined) {
        counts.hits++
        return known
      }
      counts.misses++
      const loaded = await fetch(pointer)
      if (loaded !== undefined) cache.set(pointer.objectKey, loaded)
      return loaded
    },
  }
}

/** Indexes the entries whose debug id is a UUID by this id. */
function filesByDebugId(files: readonly ManifestFile[]): ReadonlyMap<string, ManifestFile> {
  const found = new Map<string, ManifestFile>()
  for (const file of files) {
    const debugId = canonicalDebugId(file.debugId)
    if (debugId !== undefined && !found.has(debugId)) found.set(debugId, file)
  }
  return found
}
