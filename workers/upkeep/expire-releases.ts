import { deleteRelease } from '../../shared/directory/delete-release.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { ReleaseCursor, ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { manifestPrefix } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ObjectDeleter } from './delete-objects.ts'

/** Dependencies of deleting releases that are past the retention of their workspace. */
export interface ExpireReleasesDeps {
  readonly directory: Pick<Directory, 'workspaces'>
  readonly releases: Pick<ReleaseStore, 'releases' | 'release' | 'remove'>
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
 * manifests. Maps stay, because other releases may have the same. Throws the errors of the stores.
 */
export async function expireReleases(deps: ExpireReleasesDeps): Promise<void> {
  for await (const { id, retention } of deps.directory.workspaces()) {
    if (retention?.releases === undefined) continue
    const keptSinceMs = deps.now() - retention.releases * DAY_MS
    let after: ReleaseCursor | undefined
    do {
      await deps.assertElected()
      const page = await deps.releases.releases(id, { limit: PAGE, after })
      for (const { release, manifest } of page.releases) {
        const lastMs = Date.parse(manifest?.completedAt ?? release.createdAt)
        if (lastMs < keptSinceMs) await expireRelease(deps, release)
      }
      after = page.end
    } while (after !== undefined)
  }
}

async function expireRelease(deps: ExpireReleasesDeps, { workspaceId, slug }: ReleaseKey): Promise<void> {
  // Listed before the release is removed: manifests of the version that is registered again have other keys.
  const manifests: string[] = []
  for await (const page of deps.store.list(manifestPrefix(workspaceId, slug))) {
    for (const { key } of page) manifests.push(key)
  }
  await deps.assertElected()
  await deleteRelease(deps, workspaceId, slug)
  await deps.objects.delete('releases', manifests)
  deps.logger.info({ workspaceId, slug }, 'a release past its retention is deleted')
}
