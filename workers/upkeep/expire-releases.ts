import type { Workspace } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { ReleaseCursor, ReleasePage, ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestPrefix, manifestSequence } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ObjectDeleter } from './delete-objects.ts'

/** Dependencies of deleting releases that are past the retention of their workspace. */
export interface ExpireReleasesDeps {
  readonly directory: Pick<Directory, 'workspaces' | 'workspaceById'>
  readonly releases: Pick<ReleaseStore, 'releases' | 'removeUnchanged'>
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
const DAY_MS = 86_400_000

/**
 * Deletes the releases whose last completion, or else registration, is past the retention of their workspace, with their
 * manifests. One that a build uploads to or has completed meanwhile stays. Their maps are left to
 * `sweepMaps`, because other releases may have the same. Throws the errors of the stores.
 */
export async function expireReleases(deps: ExpireReleasesDeps): Promise<void> {
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
  const { workspaceId, slug } = release
  // Listed first. The manifest of a later completion is either not in the list, or its uploads are found below.
  const manifests: string[] = []
  for await (const page of deps.store.list(manifestPrefix(workspaceId, slug))) {
    for (const { key } of page) {
      if (manifest === undefined || manifestSequence(key) <= manifest.sequence) manifests.push(key)
    }
  }
  await deps.assertElected()
  // The retention may have become longer since the run began.
  if (!isExpired(await deps.directory.workspaceById(workspaceId), listed, deps.now())) return
  if (await deps.hasUploads(release)) return
  if ((await deps.releases.removeUnchanged(release, manifest)) === 'changed') return
  await deps.removeUploads(release)
  await deps.objects.delete('releases', manifests)
  deps.logger.info({ workspaceId, slug }, 'a release past its retention is deleted')
}
