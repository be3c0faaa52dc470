import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/source-maps/schemas.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Digested } from './part-claims.ts'
import { type PieceObject, readMapBytes, sameBytes } from './read-map-bytes.ts'

/** The outcome of looking up a map. `found`: its bytes are stored under their digest. `fault`: the map cannot be used. */
export type LookedUp =
  | { readonly outcome: 'found'; readonly map: Digested }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'fault'; readonly fault: string }

/** The maps of one workspace, each stored once under the SHA-256 of its bytes. */
export interface MapContents {
  /** Digests the concatenated bytes of these objects and stores them if they match the declared hash. */
  keep(pieces: readonly PieceObject[], declared: DeclaredHash | undefined): Promise<LookedUp>
  /** Returns a stored map if it exists and matches the declared hash. */
  find(sha256: string, declared: DeclaredHash | undefined): Promise<LookedUp>
  /** SHA-256 digests of the maps that were written. They are recorded together, since every record is an fsync of Redis. */
  readonly written: ReadonlySet<string>
  readonly writtenBytes: number
}

/** What the stored maps depend on. */
export interface MapContentsDeps {
  readonly objects: Pick<ObjectStore, 'head' | 'getStream' | 'put' | 'putStream'>
  readonly releases: Pick<ReleaseStore, 'storedMaps' | 'removeStoredMaps'>
}

/** A map up to this size, as most are, is kept in memory while it is read and need not be read twice. */
const KEEP_BYTES = 1024 * 1024
const LIMITS = { maxBytes: SOURCE_MAP_MAX_BYTES, keepBytes: KEEP_BYTES }
const CONTENT = { contentType: 'application/json' }

/** Fault of a map whose bytes do not match the declared hash. */
export const OTHER_DIGEST = 'does not match its hash'

/** Opens the maps of one workspace. Every call may be repeated. Faults of the stores are thrown. */
export function createMapContents(deps: MapContentsDeps, workspaceId: string): MapContents {
  const { objects, releases } = deps
  const written = new Set<string>()
  let writtenBytes = 0

  async function isStored({ sha256 }: Digested): Promise<boolean> {
    if (written.has(sha256)) return true
    if (!(await releases.storedMaps(workspaceId, [sha256])).has(sha256)) return false
    return (await headStored(sha256)) !== undefined
  }

  async function headStored(sha256: string) {
    const head = await objects.head(sourceMapKey(workspaceId, sha256))
    // The object was deleted, so the sign call must request it again.
    if (head === undefined) await releases.removeStoredMaps(workspaceId, [sha256])
    return head
  }

  return {
    async keep(pieces, declared) {
      const read = await readMapBytes(objects, pieces, declared, LIMITS)
      if (read.outcome === 'gone') return { outcome: 'absent' }
      if (read.outcome === 'too_large') return { outcome: 'fault', fault: `is over ${SOURCE_MAP_MAX_BYTES} bytes` }
      if (read.outcome === 'other')
        return { outcome: 'fault', fault: `part ${read.index} has changed since it was sent` }
      const { map, matches, bytes } = read
      if (!matches) return { outcome: 'fault', fault: OTHER_DIGEST }
      if (!(await isStored(map))) {
        const key = sourceMapKey(workspaceId, map.sha256)
        if (bytes) await objects.put(key, bytes, CONTENT)
        else await objects.putStream(key, sameBytes(objects, pieces, map), map.size, CONTENT)
        written.add(map.sha256)
        writtenBytes += map.size
      }
      return { outcome: 'found', map }
    },
    async find(sha256, declared) {
      if (declared?.algorithm === 'sha256' && declared.hex !== sha256) return { outcome: 'fault', fault: OTHER_DIGEST }
      const head = await headStored(sha256)
      if (head === undefined) return { outcome: 'absent' }
      const found = { outcome: 'found', map: { sha256, size: head.size } } as const
      if (declared === undefined || declared.algorithm === 'sha256') return found
      const read = await readMapBytes(objects, [{ key: sourceMapKey(workspaceId, sha256) }], declared, LIMITS)
      if (read.outcome !== 'read') return { outcome: 'absent' }
      return read.matches ? found : { outcome: 'fault', fault: OTHER_DIGEST }
    },
    written,
    get writtenBytes() {
      return writtenBytes
    },
  }
}
