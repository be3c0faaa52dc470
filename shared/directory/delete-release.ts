import type { ReleaseKey } from '../ids/release-key.ts'
import type { ReleaseStore } from './release-store.ts'

/** Dependencies of deleting a release. */
export interface DeleteReleaseDeps {
  readonly releases: Pick<ReleaseStore, 'release' | 'remove'>
  /** Removes the uploads of a release from the Redis of the queues. */
  readonly removeUploads: (release: ReleaseKey) => Promise<void>
}

/**
 * Deletes a release with its uploads. They are removed first, so that a deletion that fails can be repeated, and once more
 * afterwards, because a completion may have kept claims in between. A later one finds no release. `onRemoval` records the deletion
 * before it begins.
 */
export async function deleteRelease(
  { releases, removeUploads }: DeleteReleaseDeps,
  workspaceId: string,
  slug: string,
  onRemoval: () => Promise<void> = async () => {},
): Promise<'removed' | 'absent'> {
  const release = await releases.release(workspaceId, slug)
  if (release === undefined) return 'absent'
  await onRemoval()
  await removeUploads(release)
  const outcome = await releases.remove(workspaceId, slug)
  await removeUploads(release)
  return outcome
}
