import { formatBytes, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import { GIB, MIB } from '../../schemas/units.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectHead, ObjectStore } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { SOURCE_MAP_COST_LIMIT_BYTES } from '../decode/source-map-scanner.ts'
import { digestsInMetadata, isDeclared, type MapDigests, mapMetadata } from './map-digests.ts'
import type { Digested } from './part-claims.ts'
import { type PieceObject, type ReadBytes, readMapBytes, sameBytes } from './read-map-bytes.ts'

/** The outcome of looking up a map. `found`: its bytes are stored under their digest. `fault`: the map cannot be used. */
export type LookedUp =
  | { readonly outcome: 'found'; readonly map: Digested }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'fault'; readonly fault: string }

/** Stores of the maps of a workspace. */
export interface MapContentsDeps {
  readonly objects: Pick<ObjectStore, 'head' | 'getStream' | 'put' | 'putStream'>
  readonly releases: Pick<ReleaseStore, 'storedMaps' | 'removeStoredMaps' | 'useMap'>
}

/** A map up to this size, as most are, is kept in memory while it is read and need not be read twice. */
const KEEP_BYTES = MIB
/**
 * Bytes of maps that one completion may read to digest them. Each may be read once more while it is stored. What a workspace
 * may have uploaded and not completed is no more (docs/api/releases.md#sign).
 */
export const COMPLETION_READ_BYTES = 8 * GIB
const CONTENT_TYPE = 'application/json'

/** Fault of a map whose bytes do not match the declared hash. */
export const OTHER_DIGEST = 'does not match its hash'
/** Fault of a map that cannot be parsed within the memory for it. */
export const TOO_COSTLY = `has too many JSON values: reading it would take more than ${formatBytes(SOURCE_MAP_COST_LIMIT_BYTES)}`
const OUT_OF_BUDGET = `was not read: one completion reads at most ${formatBytes(COMPLETION_READ_BYTES)} of maps`

/** The maps of one workspace, each stored once under the SHA-256 of its bytes. Faults of the stores are thrown. */
export class MapContents {
  /** SHA-256 digests of the maps that were written. They are recorded together, since every record is an fsync of Redis. */
  readonly written = new Set<string>()
  writtenBytes = 0
  /** Bytes of the maps that were read to digest them. */
  readBytes = 0
  readonly #objects: MapContentsDeps['objects']
  readonly #releases: MapContentsDeps['releases']
  readonly #workspaceId: string
  readonly #readLimitBytes: number
  /** Stored maps that this completion has looked up, by SHA-256. 100,000 paths may name one map. */
  readonly #heads = new Map<string, Promise<ObjectHead | undefined>>()
  readonly #digests = new Map<string, Promise<MapDigests | undefined>>()

  constructor({ objects, releases }: MapContentsDeps, workspaceId: string, readLimitBytes = COMPLETION_READ_BYTES) {
    this.#objects = objects
    this.#releases = releases
    this.#workspaceId = workspaceId
    this.#readLimitBytes = readLimitBytes
  }

  /** Digests the concatenated bytes of these objects and stores them if they match the declared hash. May be repeated. */
  async keep(pieces: readonly PieceObject[], declared: DeclaredHash | undefined): Promise<LookedUp> {
    const read = await this.#read(pieces, SOURCE_MAP_COST_LIMIT_BYTES)
    switch (read.outcome) {
      case 'gone':
        return { outcome: 'absent' }
      case 'too_large':
        return fault(`is over ${SOURCE_MAP_MAX_BYTES} bytes`)
      case 'too_costly':
        return fault(TOO_COSTLY)
      case 'out_of_budget':
        return fault(OUT_OF_BUDGET)
      case 'other':
        return fault(`part ${read.index} has changed since it was sent`)
      case 'read': {
        const { digests, size, bytes } = read
        if (declared && !isDeclared(declared, digests)) return fault(OTHER_DIGEST)
        const map = { sha256: digests.sha256, size }
        if (!(await this.#isStored(map))) await this.#store(pieces, map, digests, bytes)
        this.#digests.set(map.sha256, Promise.resolve(digests))
        return { outcome: 'found', map }
      }
    }
  }

  /** Returns a stored map if it exists and matches the declared hash. May be repeated. */
  async find(sha256: string, declared: DeclaredHash | undefined): Promise<LookedUp> {
    if (declared?.algorithm === 'sha256' && declared.hex !== sha256) return fault(OTHER_DIGEST)
    const head = await this.#headStored(sha256)
    if (head === undefined) return { outcome: 'absent' }
    if (declared !== undefined && declared.algorithm !== 'sha256') {
      const digests = await this.#digestsOf(sha256, head)
      if (digests === undefined) return fault(OUT_OF_BUDGET)
      if (!isDeclared(declared, digests)) return fault(OTHER_DIGEST)
    }
    return { outcome: 'found', map: { sha256, size: head.size } }
  }

  async #store(
    pieces: readonly PieceObject[],
    map: Digested,
    digests: MapDigests,
    bytes: Buffer | undefined,
  ): Promise<void> {
    const key = sourceMapKey(this.#workspaceId, map.sha256)
    const options = { contentType: CONTENT_TYPE, metadata: mapMetadata(digests) }
    if (bytes) await this.#objects.put(key, bytes, options)
    else await this.#objects.putStream(key, sameBytes(this.#objects, pieces, map), map.size, options)
    this.written.add(map.sha256)
    this.writtenBytes += map.size
  }

  async #isStored({ sha256 }: Digested): Promise<boolean> {
    if (this.written.has(sha256)) return true
    await this.#releases.useMap(this.#workspaceId, sha256)
    if (!(await this.#releases.storedMaps(this.#workspaceId, [sha256])).has(sha256)) return false
    return (await this.#headStored(sha256)) !== undefined
  }

  #headStored(sha256: string): Promise<ObjectHead | undefined> {
    return remember(this.#heads, sha256, async () => {
      // Before the look-up: what exists after this stays, and what is being deleted is looked up again.
      await this.#releases.useMap(this.#workspaceId, sha256)
      const head = await this.#objects.head(sourceMapKey(this.#workspaceId, sha256))
      // The object was deleted, so the sign call must request it again.
      if (head === undefined) await this.#releases.removeStoredMaps(this.#workspaceId, [sha256])
      return head
    })
  }

  /** Returns the digests of a stored map. Reads it if its object has none, or returns undefined if it may not. */
  #digestsOf(sha256: string, head: ObjectHead): Promise<MapDigests | undefined> {
    return remember(this.#digests, sha256, async () => {
      const known = digestsInMetadata(sha256, head.metadata)
      if (known !== undefined) return known
      const read = await this.#read([{ key: sourceMapKey(this.#workspaceId, sha256) }], Number.POSITIVE_INFINITY)
      if (read.outcome === 'gone') throw new TransientError('a stored map was deleted while it was looked up')
      return read.outcome === 'read' ? read.digests : undefined
    })
  }

  /** Reads within the budget of the completion. A read that fails does not count, because it is repeated. */
  async #read(pieces: readonly PieceObject[], maxCostBytes: number): Promise<ReadBytes> {
    let taken = 0
    const take = (bytes: number) => {
      if (this.readBytes + bytes > this.#readLimitBytes) return false
      this.readBytes += bytes
      taken += bytes
      return true
    }
    const limits = { maxBytes: SOURCE_MAP_MAX_BYTES, keepBytes: KEEP_BYTES, maxCostBytes, take }
    try {
      return await readMapBytes(this.#objects, pieces, limits)
    } catch (error) {
      this.readBytes -= taken
      throw error
    }
  }
}

const fault = (text: string) => ({ outcome: 'fault', fault: text }) as const

/** Returns what is known or being looked up, else looks it up. An absent value and a failure are not remembered. */
function remember<T>(
  known: Map<string, Promise<T | undefined>>,
  key: string,
  lookUp: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const before = known.get(key)
  if (before !== undefined) return before
  const forget = () => void (known.get(key) === found && known.delete(key))
  const found = lookUp().then(
    value => {
      if (value === undefined) forget()
      return value
    },
    error => {
      forget()
      throw error
    },
  )
  known.set(key, found)
  return found
}
