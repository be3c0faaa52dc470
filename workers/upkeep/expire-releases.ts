import type { Redis } from 'ioredis'
import type { Workspace } from '../../schemas/records/directory.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { upkeepKeys } from '../../shared/directory/record.ts'
import type { ReleaseCursor, ReleasePage, ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestPrefix, manifestSequence } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ObjectDeleter } from './delete-objects.ts'

/** Dependencies of deleting releases that are past the retention of their workspace. */
export interface ExpireReleasesDeps {
  readonly directory: Pick<Directory, 'workspaces' | 'workspaceById'>
  readonly directoryRedis: Redis
  readonly releases: Pick<ReleaseStore, 'releases' | 'release' | 'removeUnchanged'>
  readonly hasUploads: (release: ReleaseKey) => Promise<boolean>
  readonly removeUploads: (release: ReleaseKey) => Promise<void>
  readonly store: Pick<ObjectStore, 'list'>
  readonly objects: Pick<ObjectDeleter, 'delete'>
  readonly logger: Logger
  readonly now: () => number
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
}

const PAGE = 200

/**
 * Deletes the releases whose last completion, or else registration, is past the retention of their workspace, with their
 * manifests. One that a build uploads to or has completed meanwhile stays. Their maps are left to
 * `sweepMaps`, because other releases may have the same. Throws the errors of the stores.
 *
 * A release is removed before its manifests, because it may be completed until then, and symbolication reads the current one. It is
 * noted in the same step, and the next run first finishes what it finds noted. A run removes no release before all of that is
 * finished, so the notes are no more than the processes that may be elected at a time.
 */
export async function expireReleases(deps: ExpireReleasesDeps): Promise<void> {
  await finishRemovals(deps)
  for await (const workspace of deps.directory.workspaces()) {
    if (workspace.retention?.releases === undefined) continue
    let after: ReleaseCursor | undefined
    do {
      await deps.assertElected()
      const page = await deps.releases.releases(workspace.id, { limit: PAGE, after })
      for (const listed of page.releases) {
        if (isExpired(workspace, listed, deps.now())) await expireRelease(deps, listed)
      }
      after = page.end
    } while (after !== undefined)
  }
}

type Listed = ReleasePage['releases'][number]

function isExpired(workspace: Workspace | undefined, { release, manifest }: Listed, nowMs: number): boolean {
  const days = workspace?.retention?.releases
  return days !== undefined && Date.parse(manifest?.completedAt ?? release.createdAt) < nowMs - days * DAY_MS
}

async function expireRelease(deps: ExpireReleasesDeps, listed: Listed): Promise<void> {
  const { release, manifest } = listed
  const { workspaceId, surfaceId, slug } = release
  const removal = { workspaceId, surfaceId, slug, sequence: manifest?.sequence ?? Number.POSITIVE_INFINITY }
  // Listed first. The manifest of a later completion is either not in the list, or its uploads are found below.
  const manifests = await listManifests(deps, removal)
  await deps.assertElected()
  // The retention may have become longer since the run began.
  if (!isExpired(await deps.directory.workspaceById(workspaceId), listed, deps.now())) return
  if (await deps.hasUploads(release)) return
  if ((await deps.releases.removeUnchanged(release, manifest, noteOf(removal))) === 'changed') return
  await finishRemoval(deps, removal, manifests)
}

/** A release that was removed, with the sequence of its last manifest, infinite without one. */
interface Removal extends ReleaseKey {
  readonly sequence: number
}

const noteOf = ({ workspaceId, surfaceId, sequence, slug }: Removal) =>
  [workspaceId, surfaceId, sequence, slug].join('/')

function parseNote(note: string): Removal {
  const [workspaceId = '', surfaceId = '', sequence, ...slug] = note.split('/')
  return { workspaceId, surfaceId, sequence: Number(sequence), slug: slug.join('/') }
}

/**
 * Finishes the removals at which a run was interrupted. A release that was registered again has uploads of its own: it is left
 * alone, and its next completion, or its own expiry, deletes the older manifests.
 */
async function finishRemovals(deps: ExpireReleasesDeps): Promise<void> {
  for (const note of await deps.directoryRedis.smembers(upkeepKeys.removedReleases)) {
    await deps.assertElected()
    const removal = parseNote(note)
    const manifests = await listManifests(deps, removal)
    const release = await deps.releases.release(removal.workspaceId, removal.slug)
    if (release === undefined) await finishRemoval(deps, removal, manifests)
    else await deps.directoryRedis.srem(upkeepKeys.removedReleases, note)
  }
}

async function finishRemoval(deps: ExpireReleasesDeps, removal: Removal, manifests: readonly string[]): Promise<void> {
  const { workspaceId, slug } = removal
  await deps.removeUploads(removal)
  await deps.objects.delete('releases', manifests)
  await deps.directoryRedis.srem(upkeepKeys.removedReleases, noteOf(removal))
  deps.logger.info({ workspaceId, slug }, 'a release past its retention is deleted')
}

/** Returns the keys of the manifests of a release, without those of later completions. */
async function listManifests({ store }: ExpireReleasesDeps, removal: Removal): Promise<string[]> {
  const keys: string[] = []
  for await (const page of store.list(manifestPrefix(removal.workspaceId, removal.slug))) {
    for (const { key } of page) if (manifestSequence(key) <= removal.sequence) keys.push(key)
  }
  return keys
}
