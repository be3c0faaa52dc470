import type { Redis } from 'ioredis'
import type { ManifestEntry } from '../../schemas/http/source-maps/schemas.ts'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { type DeclaredHash, parseDeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import type { UploadKeys } from '../../shared/queue/upload-keys.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { type LookedUp, type MapContents, OTHER_DIGEST } from './map-contents.ts'
import { missingParts, type PartClaims, recordAssembled } from './part-claims.ts'
import { type PathUploads, readUploads } from './read-uploads.ts'

/** Maps of one completion in progress at the same time. Each takes less than 2 MiB of memory, whatever its size. */
const CONCURRENT_MAPS = 16
/** Paths that a refusal names (docs/api/releases.md#source-map-complete). */
const MAX_FAULTS = 20

/** The files of a manifest, or why it cannot be built. */
type CollectedMaps =
  | { readonly ok: true; readonly files: ManifestFile[] }
  /** One sentence per path, in the order of the entries. */
  | { readonly ok: false; readonly faults: string[] }

/**
 * Finds and stores the maps of all entries, or returns the faults of those it cannot find. Throws a TransientError while
 * acknowledged parts are not stored yet, before it looks up any map.
 */
export async function collectMaps(deps: FindMapDeps, entries: readonly ManifestEntry[]): Promise<CollectedMaps> {
  const uploads = await readUploads(
    deps.redis,
    deps.keys,
    entries.map(entry => entry.path),
  )
  const pending = entries.find((_, i) => isPending(uploads[i] as PathUploads))
  if (pending) throw new TransientError(`parts of ${JSON.stringify(pending.path.slice(0, 200))} are not stored yet`)

  const files: ManifestFile[] = new Array(entries.length)
  const faults = new Map<number, string>()
  const isDone = () => faults.size >= MAX_FAULTS
  await forEachConcurrently(entries, { concurrency: CONCURRENT_MAPS, isDone }, async (entry, i) => {
    const found = await findMap(deps, entry, uploads[i] as PathUploads)
    if (found.ok) files[i] = found.file
    else faults.set(i, `${JSON.stringify(entry.path.slice(0, 200))} ${found.fault}`)
  })
  if (faults.size === 0) return { ok: true, files }
  const inOrder = [...faults].sort(([a], [b]) => a - b)
  return { ok: false, faults: inOrder.slice(0, MAX_FAULTS).map(([, fault]) => fault) }
}

/** Returns whether all parts are claimed and some are not stored yet. A missing number is a fault, not a reason to wait. */
function isPending({ parts }: PathUploads): boolean {
  if (parts === undefined || parts.assembled !== undefined) return false
  return missingParts(parts.parts).length === 0 && parts.parts.some(part => !part.stored)
}

/** Dependencies of looking up a map. */
interface FindMapDeps {
  readonly releaseKey: ReleaseKey
  readonly redis: Redis
  readonly keys: UploadKeys
  readonly contents: MapContents
  /** Returns the files of the current manifest by path. Reads the manifest on the first call. */
  readonly current: () => Promise<ReadonlyMap<string, ManifestFile>>
  /**
   * Returns the files by path that an earlier completion with the same body has named, as far as its manifest is still
   * stored. Absent if there was none.
   */
  readonly repeated?: (() => Promise<ReadonlyMap<string, ManifestFile>>) | undefined
  readonly retry: Retry
}

/** The map of one manifest entry, or why it cannot be used. */
type FoundMap =
  | { readonly ok: true; readonly file: ManifestFile }
  /** The rest of a sentence that begins with the path. */
  | { readonly ok: false; readonly fault: string }

/**
 * Finds and stores the map of one entry (docs/api/releases.md#source-map-complete). The candidates are, in this order: the
 * object at the signed address, the parts, the last single upload, the map stored before the sign call, and the map that
 * the current manifest names. If the hash is a SHA-256, the last one is the map with it that the workspace has stored. With
 * another hash, a completion that repeats an earlier one, whose uploads are gone, also finds the map that the earlier one has
 * named. A candidate whose bytes do not match `hash` is skipped. If `hash` cannot be compared, the first
 * candidate is used.
 */
async function findMap(deps: FindMapDeps, entry: ManifestEntry, uploads: PathUploads): Promise<FoundMap> {
  const declared = parseDeclaredHash(entry.hash)
  let fault: string | undefined
  for (const look of CANDIDATES) {
    const looked = await deps.retry('look up a source map', () => look(deps, { entry, declared, uploads }))
    if (looked.outcome === 'found') {
      const { path, hash, debugId, chunkUrl } = entry
      return { ok: true, file: { path, hash, debugId, chunkUrl, ...looked.map, verified: declared !== undefined } }
    }
    if (looked.outcome === 'fault') fault ??= looked.fault
    if (fault !== undefined && declared === undefined) break
  }
  return { ok: false, fault: fault ?? 'was not uploaded' }
}

const CANDIDATES = [lookAtStaged, lookAtParts, lookAtSingle, lookAtDeclared, lookAtManifest, lookAtStored] as const

interface Wanted {
  readonly entry: ManifestEntry
  readonly declared: DeclaredHash | undefined
  readonly uploads: PathUploads
}

const ABSENT = { outcome: 'absent' } as const

async function lookAtStaged({ contents }: FindMapDeps, { declared, uploads }: Wanted): Promise<LookedUp> {
  const key = uploads.declared?.stagingKey
  return key === undefined ? ABSENT : contents.keep([{ key }], declared)
}

async function lookAtParts(deps: FindMapDeps, { entry, declared, uploads }: Wanted): Promise<LookedUp> {
  if (uploads.parts === undefined) return ABSENT
  const assembled = await lookAtAssembled(deps, uploads.parts, declared)
  if (assembled.outcome !== 'absent') return assembled
  const { parts } = uploads.parts
  const missing = missingParts(parts)
  if (missing.length > 0) {
    return {
      outcome: 'fault',
      fault: missing.length === 1 ? `part ${missing[0]} is missing` : `parts ${missing.join(', ')} are missing`,
    }
  }
  const { releaseKey, contents, redis, keys } = deps
  const pieces = parts.map(claim => ({ key: partKey({ ...releaseKey, path: entry.path }, claim.part), known: claim }))
  const kept = await contents.keep(pieces, declared)
  if (kept.outcome === 'found') await recordAssembled(redis, keys.parts(entry.path), parts, kept.map)
  if (kept.outcome !== 'absent') return kept
  // Another completion has meanwhile assembled its map from these parts and deleted them.
  const [now] = await readUploads(redis, keys, [entry.path])
  return now?.parts ? lookAtAssembled(deps, now.parts, declared) : ABSENT
}

async function lookAtAssembled(
  { contents }: FindMapDeps,
  { assembled }: PartClaims,
  declared: DeclaredHash | undefined,
): Promise<LookedUp> {
  return assembled ? contents.find(assembled.sha256, declared) : ABSENT
}

async function lookAtSingle({ contents }: FindMapDeps, { declared, uploads }: Wanted): Promise<LookedUp> {
  return uploads.single ? contents.find(uploads.single.sha256, declared) : ABSENT
}

async function lookAtDeclared({ contents }: FindMapDeps, { declared, uploads }: Wanted): Promise<LookedUp> {
  const sha256 = uploads.declared?.sha256
  return sha256 === undefined ? ABSENT : contents.find(sha256, declared)
}

async function lookAtStored({ contents, repeated }: FindMapDeps, { entry, declared }: Wanted): Promise<LookedUp> {
  if (declared?.algorithm === 'sha256') return contents.find(declared.hex, undefined)
  if (repeated === undefined) return ABSENT
  const file = (await repeated()).get(entry.path)
  return file ? contents.find(file.sha256, declared) : ABSENT
}

async function lookAtManifest({ contents, current }: FindMapDeps, { entry, declared }: Wanted): Promise<LookedUp> {
  const file = (await current()).get(entry.path)
  if (file === undefined) return ABSENT
  if (file.hash === entry.hash) return contents.find(file.sha256, undefined)
  // If neither hash can be compared with the bytes, different hashes mean different maps.
  return declared ? contents.find(file.sha256, declared) : { outcome: 'fault', fault: OTHER_DIGEST }
}
