import type { Redis } from 'ioredis'
import type { Release } from '../../schemas/control.ts'
import type { Manifest, ManifestFile } from '../../schemas/manifest.ts'
import type { ProblemCode } from '../../schemas/problems.ts'
import { TransientError } from '../../shared/errors.ts'
import { manifestKey } from '../../shared/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store.ts'
import type { ReleaseStore } from '../../shared/release-store.ts'
import { uploadKeys } from '../../shared/upload-keys.ts'
import { collectMaps } from './collect-maps.ts'
import type { ReleasePlace } from './find-map.ts'
import { createMapContents } from './map-contents.ts'
import { readCompletion } from './read-completion.ts'
import { readManifest, settleUploads } from './settle-uploads.ts'

export interface CompleteReleaseDeps {
  readonly redis: Redis
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  readonly keepTrying: <T>(what: string, work: () => Promise<T>) => Promise<T>
  readonly now: () => number
}

export interface AcceptedCompletion extends ReleasePlace {
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
  const { releases, keepTrying } = deps
  const { workspaceId, surfaceId, slug, sequence } = accepted
  const release = await releases.release(workspaceId, slug)
  if (release === undefined) return refused('RELEASE_NOT_FOUND', 'there is no such release')
  if (release.surfaceId !== surfaceId) {
    return refused('AUTH_AK_SCOPE_MISMATCH', 'the release belongs to another surface than the key')
  }
  const read = await readCompletion(accepted.body)
  if (!read.ok) return refused('REQUEST_INVALID', read.message)
  const { completion } = read
  const superseded = { outcome: 'superseded', fileCount: completion.files.length } as const

  const contents = createMapContents(deps, workspaceId)
  const keys = uploadKeys(accepted)
  const common = { ...deps, place: accepted, keys, contents }
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const pointer = await releases.manifest(workspaceId, slug)
    if (pointer && pointer.sequence > sequence) return superseded
    let manifest: Manifest | undefined
    if (pointer?.sequence === sequence) {
      // It held before its worker died.
      manifest = await keepTrying('a manifest could not be read', () => readManifest(deps.objects, pointer.objectKey))
    }
    if (manifest === undefined) {
      const current = lazily(() => currentFiles(deps, pointer?.objectKey))
      const collected = await collectMaps({ ...common, current }, completion.files)
      if (!collected.ok) {
        const after = await releases.manifest(workspaceId, slug)
        // What was missing may have become part of another manifest meanwhile.
        if (after?.sequence !== pointer?.sequence) continue
        return refused('REQUEST_INVALID', collected.faults.join('; '))
      }
      manifest = {
        version: 1,
        releaseSlug: slug,
        sequence,
        files: collected.files,
        sourceFileCount: completion.sourceFileCount,
        completedAt: new Date(deps.now()).toISOString(),
      }
      await releases.addStoredMaps(workspaceId, [...contents.written])
      if (!(await replaceManifest(deps, accepted, manifest))) return superseded
    }
    const holding = manifest
    await keepTrying('uploads could not be put in order', () => settleUploads(common, holding))
    return { outcome: 'completed', release, fileCount: holding.files.length, storedBytes: contents.writtenBytes }
  }
  throw new TransientError('other completions of the release were always before')
}

const refused = (code: ProblemCode, message: string) => ({ outcome: 'refused', code, message }) as const

/** False: a later one holds. */
async function replaceManifest(
  { objects, releases, keepTrying }: CompleteReleaseDeps,
  { workspaceId, slug, sequence }: AcceptedCompletion,
  manifest: Manifest,
): Promise<boolean> {
  const objectKey = manifestKey(workspaceId, slug, sequence)
  const body = Buffer.from(JSON.stringify(manifest))
  await keepTrying('a manifest could not be stored', () =>
    objects.put(objectKey, body, { contentType: 'application/json' }),
  )
  const { files, sourceFileCount, completedAt } = manifest
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
  if (!holds) await keepTrying('a manifest could not be deleted', () => objects.deleteMany([objectKey]))
  return holds
}

async function currentFiles(
  { objects }: CompleteReleaseDeps,
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
