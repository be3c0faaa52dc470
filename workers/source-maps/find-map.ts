import type { Redis } from 'ioredis'
import type { ManifestEntry } from '../../schemas/http/source-maps/schemas.ts'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { type DeclaredHash, parseDeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { partKey } from '../../shared/object-store/object-keys.ts'
import type { UploadKeys } from '../../shared/queue/upload-keys.ts'
import { type LookedUp, type MapContents, OTHER_DIGEST } from './map-contents.ts'
import { missingParts, type PartClaims, recordAssembled } from './part-claims.ts'
import { type PathUploads, readUploads } from './read-uploads.ts'

export interface FindMapDeps {
  readonly place: ReleaseKey
  readonly redis: Redis
  readonly keys: UploadKeys
  readonly contents: MapContents
  /** What the manifest that holds names, by path; read when it is first asked for. */
  readonly current: () => Promise<ReadonlyMap<string, ManifestFile>>
  readonly retry: Retry
}

export type FoundMap =
  | { readonly ok: true; readonly file: ManifestFile }
  /** What is wrong with the path, as the rest of a sentence that begins with it. */
  | { readonly ok: false; readonly fault: string }

/**
 * Finds and stores the map of one entry (CONTRACT 4.7): what the sign call's address was given, else the parts, else the
 * last single upload, else what was stored before the sign call, else what the manifest that holds names. Bytes that are
 * not those of `hash` are passed over for the next; where nothing can be compared, the first there are count.
 */
export async function findMap(deps: FindMapDeps, entry: ManifestEntry, uploads: PathUploads): Promise<FoundMap> {
  const declared = parseDeclaredHash(entry.hash)
  let fault: string | undefined
  for (const look of [lookAtStaged, lookAtParts, lookAtSingle, lookAtDeclared, lookAtManifest]) {
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
  const { place, contents, redis, keys } = deps
  const pieces = parts.map(claim => ({ key: partKey({ ...place, path: entry.path }, claim.part), known: claim }))
  const kept = await contents.keep(pieces, declared)
  if (kept.outcome === 'found') await recordAssembled(redis, keys.parts(entry.path), parts, kept.map)
  if (kept.outcome !== 'absent') return kept
  // Another completion has made its map of them meanwhile, and deleted them.
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

async function lookAtManifest({ contents, current }: FindMapDeps, { entry, declared }: Wanted): Promise<LookedUp> {
  const file = (await current()).get(entry.path)
  if (file === undefined) return ABSENT
  if (file.hash === entry.hash) return contents.find(file.sha256, undefined)
  // Of two words that nothing can be compared with, another one means another map.
  return declared ? contents.find(file.sha256, declared) : { outcome: 'fault', fault: OTHER_DIGEST }
}
