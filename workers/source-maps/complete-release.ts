import type { Redis } from 'ioredis'
import { formatBytes } from '../../schemas/http/limits.ts'
import type { ProblemCode } from '../../schemas/http/problems.ts'
import type { CompleteSourceMaps } from '../../schemas/http/source-maps/schemas.ts'
import type { Release } from '../../schemas/records/directory.ts'
import type { Manifest, ManifestFile } from '../../schemas/records/manifest.ts'
import { DAY_MS, HOUR_MS } from '../../schemas/units.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import type { TokenBuckets } from '../../shared/concurrency/token-bucket.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type UploadKeys, uploadKeys } from '../../shared/queue/upload-keys.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { collectMaps } from './collect-maps.ts'
import { COMPLETION_READ_BYTES, MapContents } from './map-contents.ts'
import { readCompletion } from './read-completion.ts'
import { readManifest, settleUploads } from './settle-uploads.ts'

/** Dependencies of completing a release. */
export interface CompleteReleaseDeps {
  readonly redis: Redis
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  /** Bytes that the refused completions of a surface may read. */
  readonly refusedReads: Pick<TokenBuckets, 'of'>
  readonly retry: Retry
  readonly now: () => number
}

/** A completion that the edge has accepted. */
interface AcceptedCompletion extends ReleaseKey {
  /** Position in the order in which the edges accepted completions. */
  readonly sequence: number
  readonly body: Buffer
  /** Sequence of an earlier completion with the same body, which another one has replaced. */
  readonly repeats?: number | undefined
}

/** The outcome of a completion. */
export type CompletedRelease =
  /** Its manifest is current. */
  | {
      readonly outcome: 'completed'
      readonly release: Release
      readonly fileCount: number
      readonly storedBytes: number
    }
  /** The manifest of a later completion is current, so nothing was changed. */
  | { readonly outcome: 'superseded'; readonly fileCount: number }
  | { readonly outcome: 'refused'; readonly code: ProblemCode; readonly message: string }

/**
 * Bytes that the refused completions of a surface may read in an hour, on each worker. As much as one completion, so that a
 * build of any size may fail and be repeated.
 */
export const REFUSED_READS = { capacity: COMPLETION_READ_BYTES, refillMs: HOUR_MS }
const OVER_REFUSED_READS = `the refused completions of the surface have read ${formatBytes(REFUSED_READS.capacity)} of maps within an hour; retry after the delay`

/** A manifest names only maps that were looked up within this time. Maps that are not used are deleted after days. */
const LOOKED_UP_FOR_MS = DAY_MS

/** Times that another manifest may become current while maps are looked up. The job starts over after that. */
const MAX_ROUNDS = 5

/**
 * Atomically makes the manifest of a completion current, with its counters (docs/api/releases.md#source-map-complete).
 * Nothing of the release has changed until then. Repeated after a crash, it has the same result. Throws the faults of the
 * stores.
 */
export async function completeRelease(
  deps: CompleteReleaseDeps,
  accepted: AcceptedCompletion,
): Promise<CompletedRelease> {
  const { workspaceId, surfaceId, slug } = accepted
  const release = await deps.releases.release(workspaceId, slug)
  if (release === undefined) return refused('RELEASE_NOT_FOUND', 'the release does not exist: register it first')
  if (release.surfaceId !== surfaceId) {
    return refused('AUTH_AK_SCOPE_MISMATCH', 'the release belongs to another surface than the key')
  }
  const read = await readCompletion(accepted.body)
  if (!read.ok) return refused('REQUEST_INVALID', read.message)

  // The uploads of a refused completion stay. Without a bound, its repetitions would read them without end.
  const bytes = deps.refusedReads.of(`${workspaceId} ${surfaceId}`)
  if (bytes.left <= 0) return refused('INGEST_BACKPRESSURE', OVER_REFUSED_READS)
  const contents = new MapContents(deps, workspaceId)
  const completed = await completeWith(deps, accepted, { release, completion: read.completion, contents })
  if (completed.outcome !== 'completed') bytes.take(contents.readBytes)
  return completed
}

async function completeWith(
  deps: CompleteReleaseDeps,
  accepted: AcceptedCompletion,
  { release, completion, contents }: { release: Release; completion: CompleteSourceMaps; contents: MapContents },
): Promise<CompletedRelease> {
  const own = { repeats: accepted.repeats, releaseKey: accepted, keys: uploadKeys(accepted), contents }
  const round = { ...deps, ...own, startedAtMs: deps.now() }
  for (let n = 1; n <= MAX_ROUNDS; n++) {
    const made = await makeManifestCurrent(round, accepted.sequence, completion)
    if (made.outcome === 'overtaken') continue
    if (made.outcome === 'faults') return refused('REQUEST_INVALID', made.faults.join('; '))
    if (made.outcome === 'superseded') return { outcome: 'superseded', fileCount: completion.files.length }
    await deps.retry('settle the uploads of a release', () => settleUploads(round, made.manifest))
    const fileCount = made.manifest.files.length
    return { outcome: 'completed', release, fileCount, storedBytes: contents.writtenBytes }
  }
  throw new TransientError(`the manifest of the release was replaced ${MAX_ROUNDS} times while maps were looked up`)
}

const refused = (code: ProblemCode, message: string) => ({ outcome: 'refused', code, message }) as const

interface Round extends CompleteReleaseDeps {
  readonly releaseKey: ReleaseKey
  readonly keys: UploadKeys
  readonly contents: MapContents
  readonly repeats: number | undefined
  readonly startedAtMs: number
}

type MadeManifest =
  | { readonly outcome: 'current'; readonly manifest: Manifest }
  | { readonly outcome: 'superseded' }
  /** Another manifest became current while maps were looked up, and may name the maps that were missing. */
  | { readonly outcome: 'overtaken' }
  | { readonly outcome: 'faults'; readonly faults: readonly string[] }

async function makeManifestCurrent(
  round: Round,
  sequence: number,
  { files, sourceFileCount }: CompleteSourceMaps,
): Promise<MadeManifest> {
  const { releases, objects, contents, retry } = round
  const { workspaceId, slug } = round.releaseKey
  const pointer = await releases.manifest(workspaceId, slug)
  if (pointer && pointer.sequence > sequence) return { outcome: 'superseded' }
  if (pointer?.sequence === sequence) {
    // It became current before its worker died.
    const own = await retry('read a manifest', () => readManifest(objects, pointer.objectKey))
    if (own) return { outcome: 'current', manifest: own }
  }
  const current = lazily(() => filesOf(objects, pointer?.objectKey))
  const { repeats } = round
  const repeated = repeats && lazily(() => filesOf(objects, manifestKey(workspaceId, slug, repeats)))
  const collected = await collectMaps({ ...round, current, repeated: repeated || undefined }, files)
  // Needed even if other maps are missing: these maps were verified and need not be sent again.
  await releases.addStoredMaps(workspaceId, [...contents.written])
  if (!collected.ok) {
    const after = await releases.manifest(workspaceId, slug)
    if (after?.sequence !== pointer?.sequence) return { outcome: 'overtaken' }
    return { outcome: 'faults', faults: collected.faults }
  }
  const completedAt = new Date(round.now()).toISOString()
  const manifest = {
    version: 1,
    releaseSlug: slug,
    sequence,
    files: collected.files,
    sourceFileCount,
    completedAt,
  } as const
  return (await replaceManifest(round, manifest)) ? { outcome: 'current', manifest } : { outcome: 'superseded' }
}

/** Stores a manifest and makes it current. Returns false if the manifest of a later completion is current. */
async function replaceManifest(
  { objects, releases, releaseKey, retry, now, startedAtMs }: Round,
  manifest: Manifest,
): Promise<boolean> {
  const { workspaceId, slug } = releaseKey
  const { sequence, files, sourceFileCount, completedAt } = manifest
  const objectKey = manifestKey(workspaceId, slug, sequence)
  const body = Buffer.from(JSON.stringify(manifest))
  await retry('store a manifest', () => objects.put(objectKey, body, { contentType: 'application/json' }))
  const pointer = {
    version: 1,
    sequence,
    objectKey,
    sourceMapCount: files.length,
    sourceFileCount,
    completedAt,
  } as const
  if (now() - startedAtMs > LOOKED_UP_FOR_MS)
    throw new TransientError('maps were looked up too long ago: it starts over')
  const { isCurrent } = await releases.replaceManifest(workspaceId, slug, pointer)
  // It never became current, so no reader has its key.
  if (!isCurrent) await retry('delete a manifest', () => objects.deleteMany([objectKey]))
  return isCurrent
}

/** Returns the files of a manifest by path. Returns none if the manifest was deleted. */
async function filesOf(
  objects: ObjectStore,
  objectKey: string | undefined,
): Promise<ReadonlyMap<string, ManifestFile>> {
  const manifest = objectKey === undefined ? undefined : await readManifest(objects, objectKey)
  return new Map(manifest?.files.map(file => [file.path, file]))
}

/** Returns a function that runs `make` on its first call and returns the same result afterwards. A failure is not kept. */
function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch(error => {
      made = undefined
      throw error
    })
    return made
  }
}
