import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectHead, ObjectStore } from '../../shared/object-store/types.ts'
import type { Digested } from './part-claims.ts'
import { type PieceObject, readMapBytes, sameBytes } from './read-map-bytes.ts'

/** The outcome of looking up a map. `found`: its bytes are stored under their digest. `fault`: the map cannot be used. */
export type LookedUp =
  | { readonly outcome: 'found'; readonly map: Digested }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'fault'; readonly fault: string }

/** Stores of the maps of a workspace. */
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

/** The maps of one workspace, each stored once under the SHA-256 of its bytes. Faults of the stores are thrown. */
export class MapContents {
  /** SHA-256 digests of the maps that were written. They are recorded together, since every record is an fsync of Redis. */
  readonly written = new Set<string>()
  writtenBytes = 0
  readonly #objects: MapContentsDeps['objects']
  readonly #releases: MapContentsDeps['releases']
  readonly #workspaceId: string

  constructor({ objects, releases }: MapContentsDeps, workspaceId: string) {
    this.#objects = objects
    this.#releases = releases
    this.#workspaceId = workspaceId
  }

  /** Digests the concatenated bytes of these objects and stores them if they match the declared hash. May be repeated. */
  async keep(pieces: readonly PieceObject[], declared: DeclaredHash | undefined): Promise<LookedUp> {
    const read = await readMapBytes(this.#objects, pieces, declared, LIMITS)
    if (read.outcome === 'gone') return { outcome: 'absent' }
    if (read.outcome === 'too_large') return { outcome: 'fault', fault: `is over ${SOURCE_MAP_MAX_BYTES} bytes` }
    if (read.outcome === 'other') return { outcome: 'fault', fault: `part ${read.index} has changed since it was sent` }
    const { map, matches, bytes } = read
    if (!matches) return { outcome: 'fault', fault: OTHER_DIGEST }
    if (!(await this.#isStored(map))) {
      const key = sourceMapKey(this.#workspaceId, map.sha256)
      if (bytes) await this.#objects.put(key, bytes, CONTENT)
      else await this.#objects.putStream(key, sameBytes(this.#objects, pieces, map), map.size, CONTENT)
      this.written.add(map.sha256)
      this.writtenBytes += map.size
    }
    return { outcome: 'found', map }
  }

  /** Returns a stored map if it exists and matches the declared hash. May be repeated. */
  async find(sha256: string, declared: DeclaredHash | undefined): Promise<LookedUp> {
    if (declared?.algorithm === 'sha256' && declared.hex !== sha256) return { outcome: 'fault', fault: OTHER_DIGEST }
    const head = await this.#headStored(sha256)
    if (head === undefined) return { outcome: 'absent' }
    const found = { outcome: 'found', map: { sha256, size: head.size } } as const
    if (declared === undefined || declared.algorithm === 'sha256') return found
    const stored = [{ key: sourceMapKey(this.#workspaceId, sha256) }]
    const read = await readMapBytes(this.#objects, stored, declared, LIMITS)
    if (read.outcome !== 'read') return { outcome: 'absent' }
    return read.matches ? found : { outcome: 'fault', fault: OTHER_DIGEST }
  }

  async #isStored({ sha256 }: Digested): Promise<boolean> {
    if (this.written.has(sha256)) return true
    if (!(await this.#releases.storedMaps(this.#workspaceId, [sha256])).has(sha256)) return false
    return (await this.#headStored(sha256)) !== undefined
  }

  async #headStored(sha256: string): Promise<ObjectHead | undefined> {
    const head = await this.#objects.head(sourceMapKey(this.#workspaceId, sha256))
    // The object was deleted, so the sign call must request it again.
    if (head === undefined) await this.#releases.removeStoredMaps(this.#workspaceId, [sha256])
    return head
  }
}
