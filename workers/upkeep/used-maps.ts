import type { Redis } from 'ioredis'
import type { ManifestPointer } from '../../schemas/records/directory.ts'
import type { ReleaseCursor, ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { type DeclaredMap, uploadKeys } from '../../shared/queue/upload-keys.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'

/** Dependencies of finding the maps that are used. */
export interface UsedMapsDeps {
  /** Redis of the queues, which has the uploads. */
  readonly redis: Redis
  readonly releases: Pick<ReleaseStore, 'releases' | 'manifest'>
  readonly store: Pick<ObjectStore, 'getStream'>
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
  /** Used maps that are in memory at a time. */
  readonly usedMapsMax?: number
}

/** A current manifest that is absent, that the store refuses, or that has not the maps that its pointer counts. */
export class UnreadableManifest extends Error {
  override readonly name = 'UnreadableManifest'
}

/** About 25 MB of memory. */
const USED_MAPS_MAX = 200_000
/** Hashes are divided by their first 32 bits. */
const PREFIX_DIGITS = 8
const PREFIXES = 2 ** 32
const PAGE = 500
/** Attempts to read a manifest that is replaced meanwhile. */
const ATTEMPTS = 5

/**
 * The used maps of a workspace whose hashes are in a range. The range shrinks while more are added than fit into memory, so
 * that the rest needs another look at everything.
 */
export class UsedMaps {
  readonly from: number
  readonly #max: number
  #to = PREFIXES
  readonly #digests = new Set<string>()

  constructor(from: number, max: number) {
    this.from = from
    this.#max = max
  }

  /** End of the range, exclusive. Final only when all used maps are added. */
  get to(): number {
    return this.#to
  }

  /** Whether the range ends with the last hash. */
  get isLast(): boolean {
    return this.#to === PREFIXES
  }

  /** The first digits of the hashes that the range begins with. */
  get start(): string {
    return this.from.toString(16).padStart(PREFIX_DIGITS, '0')
  }

  /** Returns whether a hash is in the range. */
  covers(sha256: string): boolean {
    const prefix = prefixOf(sha256)
    return prefix >= this.from && prefix < this.#to
  }

  add(sha256: string): void {
    if (!this.covers(sha256)) return
    this.#digests.add(compact(sha256))
    while (this.#digests.size > this.#max && this.#to - this.from > 1) this.#shrink()
  }

  has(sha256: string): boolean {
    return this.#digests.has(compact(sha256))
  }

  #shrink(): void {
    this.#to -= Math.floor((this.#to - this.from) / 2)
    for (const digest of this.#digests)
      if (!this.covers(Buffer.from(digest, 'latin1').toString('hex'))) this.#digests.delete(digest)
  }
}

const prefixOf = (sha256: string) => Number.parseInt(sha256.slice(0, PREFIX_DIGITS), 16)
/** Returns the 32 bytes as a text, which has no part of the text that the hash was cut from. */
const compact = (sha256: string) => Buffer.from(sha256, 'hex').toString('latin1')

/**
 * Finds the maps that the current manifests and the uploads of a workspace name, beginning with this prefix. The uploads are
 * read first, because a completion makes its manifest current before it removes them. Throws an UnreadableManifest, and the
 * errors of the stores.
 */
export async function findUsedMaps(deps: UsedMapsDeps, workspaceId: string, from: number): Promise<UsedMaps> {
  const used = new UsedMaps(from, deps.usedMapsMax ?? USED_MAPS_MAX)
  for await (const release of releasesWithUploads(deps.redis, workspaceId)) {
    await deps.assertElected()
    await addUploads(deps.redis, release, used)
  }
  for await (const { release } of walkReleases(deps, workspaceId)) await addUploads(deps.redis, release, used)
  for await (const { release, manifest } of walkReleases(deps, workspaceId)) {
    if (manifest) await addManifest(deps, release, manifest, used)
  }
  return used
}

async function* walkReleases({ releases, assertElected }: UsedMapsDeps, workspaceId: string) {
  let after: ReleaseCursor | undefined
  do {
    const page = await releases.releases(workspaceId, { limit: PAGE, after })
    for (const found of page.releases) {
      await assertElected()
      yield found
    }
    after = page.end
  } while (after !== undefined)
}

/** Yields the releases whose uploads were charged within 24 h, also those that are not registered. */
async function* releasesWithUploads(redis: Redis, workspaceId: string): AsyncGenerator<ReleaseKey> {
  let cursor = '0'
  do {
    const [next, found] = await redis.zscan(uploadBudgetKeys(workspaceId).ends, cursor, 'COUNT', PAGE)
    cursor = next
    for (let i = 0; i < found.length; i += 2) {
      const [surfaceId = '', ...slug] = (found[i] ?? '').split('/')
      yield { workspaceId, surfaceId, slug: slug.join('/') }
    }
  } while (cursor !== '0')
}

/** Adds the maps on which a completion may rely without an upload: those that were stored when they were declared or sent. */
async function addUploads(redis: Redis, release: ReleaseKey, used: UsedMaps): Promise<void> {
  const keys = uploadKeys(release)
  for await (const fields of pagesOfScan(cursor => redis.hscan(keys.signed, cursor, 'COUNT', PAGE))) {
    for (let i = 1; i < fields.length; i += 2) {
      const { sha256 } = JSON.parse(fields[i] ?? '') as DeclaredMap
      if (sha256 !== undefined) used.add(sha256)
    }
  }
  for await (const fields of pagesOfScan(cursor => redis.hscan(keys.singles, cursor, 'COUNT', PAGE))) {
    for (let i = 1; i < fields.length; i += 2) addNamed(fields[i], used)
  }
  // Sealed claims are normally those of the current manifest, which an older backup of the directory may not name.
  for (const claims of [keys.claimed, keys.sealed]) {
    for await (const paths of pagesOfScan(cursor => redis.sscan(claims, cursor, 'COUNT', PAGE))) {
      const assembled = await Promise.all(paths.map(path => redis.hget(keys.partsOf(path), 'assembled')))
      for (const text of assembled) addNamed(text, used)
    }
  }
}

/** Adds the map of `sha256:size` or `count:sha256:size`. */
function addNamed(text: string | null | undefined, used: UsedMaps): void {
  const sha256 = /(?:^|:)([0-9a-f]{64}):/.exec(text ?? '')?.[1]
  if (sha256 !== undefined) used.add(sha256)
}

async function* pagesOfScan(scan: (cursor: string) => Promise<[string, string[]]>): AsyncGenerator<string[]> {
  let cursor = '0'
  do {
    const [next, page] = await scan(cursor)
    cursor = next
    yield page
  } while (cursor !== '0')
}

/** Adds the maps of the current manifest of a release, or of the one that has replaced it meanwhile. */
async function addManifest(
  { releases, store }: UsedMapsDeps,
  { workspaceId, slug }: ReleaseKey,
  listed: ManifestPointer,
  used: UsedMaps,
): Promise<void> {
  let pointer = listed
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const maps = await readMaps(store, pointer.objectKey, used).catch(error => {
      if (error instanceof PermanentError) throw new UnreadableManifest(error.message, { cause: error })
      throw error
    })
    if (maps === pointer.sourceMapCount) return
    const now = await releases.manifest(workspaceId, slug)
    if (now === undefined) return
    if (now.sequence === pointer.sequence) break
    pointer = now
  }
  throw new UnreadableManifest(`the manifest ${pointer.objectKey} is absent or incomplete`)
}

const NAMED_MAP = /"sha256":"([0-9a-f]{64})"/g
/** A match that is cut by the end of a chunk begins at most this many characters before it. */
const CUT_MATCH = '"sha256":"'.length + 64

/**
 * Adds the maps that a manifest names and returns their number. Reads it as a stream, because it may have 64 MiB. A quote within
 * a path is escaped, so the texts of a client never match.
 */
async function readMaps(store: UsedMapsDeps['store'], key: string, used: UsedMaps): Promise<number> {
  const object = await store.getStream(key)
  if (object === undefined) return -1
  let maps = 0
  let rest = ''
  for await (const chunk of object.body as AsyncIterable<Buffer>) {
    const text = rest + chunk.toString('latin1')
    let end = 0
    for (const match of text.matchAll(NAMED_MAP)) {
      used.add(match[1] as string)
      maps++
      end = match.index + match[0].length
    }
    rest = text.slice(Math.max(end, text.length - CUT_MATCH))
  }
  return maps
}
