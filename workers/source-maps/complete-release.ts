import type { Redis } from 'ioredis'
import type { ProblemCode } from '../../schemas/http/problems.ts'
import type { CompleteSourceMaps } from '../../schemas/http/source-maps/schemas.ts'
import type { Release } from '../../schemas/records/directory.ts'
import type { Manifest, ManifestFile } from '../../schemas/records/manifest.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import { type UploadKeys, uploadKeys } from '../../shared/queue/upload-keys.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { collectMaps } from './collect-maps.ts'
import { createMapContents, type MapContents } from './map-contents.ts'
import { readCompletion } from './read-completion.ts'
import { readManifest, settleUploads } from './settle-uploads.ts'

export interface CompleteReleaseDeps {
  readonly redis: Redis
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  readonly retry: Retry
  readonly now: () => number
}

export interface AcceptedCompletion extends ReleaseKey {
  /** Its place in the order in which completions were accepted. */
  readonly sequence: number
  readonly body: Buffer
}

export type CompletedRelease =
  /** Its manifest holds. */
  | {
      readonly outcome: 'completed'
      readonly release: Release
      readonly fileCount: number
      readonly storedBytes: number
    }
  /** A later one holds: nothing was changed. */
  | { readonly outcome: 'superseded'; readonly fileCount: number }
  | { readonly outcome: 'refused'; readonly code: ProblemCode; readonly message: string }

/** Manifests that may replace each other while the maps of one are looked for; the job begins anew after that. */
const MAX_ROUNDS = 5

/**
 * Has the manifest of a completion hold (spec 4.7), with its counters, in one step: until then nothing of the release has
 * changed. A repetition after a crash anywhere comes to the same end. Throws the stores' faults.
 */
export async function completeRelease(
  deps: CompleteReleaseDeps,
  accepted: AcceptedCompletion,
): Promise<CompletedRelease> {
  const { workspaceId, surfaceId, slug } = accepted
  const release = await deps.releases.release(workspaceId, slug)
  if (release === undefined) return refused('RELEASE_NOT_FOUND', 'there is no such release')
  if (release.surfaceId !== surfaceId) {
    return refused('AUTH_AK_SCOPE_MISMATCH', 'the release belongs to another surface than the key')
  }
  const read = await readCompletion(accepted.body)
  if (!read.ok) return refused('REQUEST_INVALID', read.message)

  const contents = createMapContents(deps, workspaceId)
  const round = { ...deps, place: accepted, keys: uploadKeys(accepted), contents }
  for (let n = 1; n <= MAX_ROUNDS; n++) {
    const made = await makeManifestHold(round, accepted.sequence, read.completion)
    if (made.outcome === 'overtaken') continue
    if (made.outcome === 'faults') return refused('REQUEST_INVALID', made.faults.join('; '))
    if (made.outcome === 'superseded') return { outcome: 'superseded', fileCount: read.completion.files.length }
    await deps.retry('settle the uploads of a release', () => settleUploads(round, made.manifest))
    const fileCount = made.manifest.files.length
    return { outcome: 'completed', release, fileCount, storedBytes: contents.writtenBytes }
  }
  throw new TransientError('the manifest of the release was replaced again and again')
}

const refused = (code: ProblemCode, message: string) => ({ outcome: 'refused', code, message }) as const

interface Round extends CompleteReleaseDeps {
  readonly place: ReleaseKey
  readonly keys: UploadKeys
  readonly contents: MapContents
}

type MadeManifest =
  | { readonly outcome: 'holds'; readonly manifest: Manifest }
  | { readonly outcome: 'superseded' }
  /** Its maps were looked for while another manifest came to hold: what was missing may be part of that. */
  | { readonly outcome: 'overtaken' }
  | { readonly outcome: 'faults'; readonly faults: readonly string[] }

async function makeManifestHold(
  round: Round,
  sequence: number,
  { files, sourceFileCount }: CompleteSourceMaps,
): Promise<MadeManifest> {
  const { releases, objects, contents, retry } = round
  const { workspaceId, slug } = round.place
  const pointer = await releases.manifest(workspaceId, slug)
  if (pointer && pointer.sequence > sequence) return { outcome: 'superseded' }
  if (pointer?.sequence === sequence) {
    // It came to hold before its worker died.
    const held = await retry('read a manifest', () => readManifest(objects, pointer.objectKey))
    if (held) return { outcome: 'holds', manifest: held }
  }
  const current = lazily(() => currentFiles(objects, pointer?.objectKey))
  const collected = await collectMaps({ ...round, current }, files)
  // Also when others are missing: these were verified, and need not be sent again.
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
  return (await replaceManifest(round, manifest)) ? { outcome: 'holds', manifest } : { outcome: 'superseded' }
}

/** False: a later one holds. */
async function replaceManifest({ objects, releases, place, retry }: Round, manifest: Manifest): Promise<boolean> {
  const { workspaceId, slug } = place
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
  const { holds } = await releases.replaceManifest(workspaceId, slug, pointer)
  // Nobody has ever read its name: it did not hold when its maps were looked for.
  if (!holds) await retry('delete a manifest', () => objects.deleteMany([objectKey]))
  return holds
}

async function currentFiles(
  objects: ObjectStore,
  objectKey: string | undefined,
): Promise<ReadonlyMap<string, ManifestFile>> {
  const manifest = objectKey === undefined ? undefined : await readManifest(objects, objectKey)
  return new Map(manifest?.files.map(file => [file.path, file]))
}

/** What is made once, when it is first asked for; a failure is not kept. */
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
