import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/source-maps/schemas.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import type { Digested } from './part-claims.ts'
import { type PieceObject, readMapBytes, sameBytes } from './read-map-bytes.ts'

/** A map that was looked for: its bytes are stored under their digest now, or it is absent, or not what it should be. */
export type LookedUp =
  | { readonly outcome: 'found'; readonly map: Digested }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'fault'; readonly fault: string }

/** The maps of one workspace, each stored once under the SHA-256 of its bytes. */
export interface MapContents {
  /** Digests what these objects hold together and stores it, if it is what was declared. */
  keep(pieces: readonly PieceObject[], declared: DeclaredHash | undefined): Promise<LookedUp>
  /** A map that is stored already, if it is there and what was declared. */
  find(sha256: string, declared: DeclaredHash | undefined): Promise<LookedUp>
  /** The SHA-256 of what was written, for the record of stored maps: one for each would be an fsync of Redis for each. */
  readonly written: ReadonlySet<string>
  readonly writtenBytes: number
}

export interface MapContentsDeps {
  readonly objects: Pick<ObjectStore, 'head' | 'getStream' | 'put' | 'putStream'>
  readonly releases: Pick<ReleaseStore, 'storedMaps' | 'removeStoredMaps'>
}

/** Most maps of a build are smaller: they are read once and put as they are. */
const KEEP_BYTES = 1024 * 1024
const LIMITS = { maxBytes: SOURCE_MAP_MAX_BYTES, keepBytes: KEEP_BYTES }
const CONTENT = { contentType: 'application/json' }

export const OTHER_DIGEST = 'has another digest than its hash says'

/** Every call may be repeated; a store's faults are thrown. */
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
    // Somebody has deleted it: the sign call must ask for it again.
    if (head === undefined) await releases.removeStoredMaps(workspaceId, [sha256])
    return head
  }

  return {
    async keep(pieces, declared) {
      const read = await readMapBytes(objects, pieces, declared, LIMITS)
      if (read.outcome === 'gone') return { outcome: 'absent' }
      if (read.outcome === 'too_large') return { outcome: 'fault', fault: `is over ${SOURCE_MAP_MAX_BYTES} bytes` }
      if (read.outcome === 'other') return { outcome: 'fault', fault: `part ${read.index} is not as it was sent` }
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
