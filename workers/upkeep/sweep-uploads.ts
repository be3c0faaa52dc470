import { HOUR_MS } from '../../schemas/units.ts'
import { UPLOADS_PREFIX } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { ObjectDeleter } from './delete-objects.ts'

/** Dependencies of deleting uploads that no manifest took. */
interface SweepUploadsDeps {
  readonly store: Pick<ObjectStore, 'list'>
  readonly objects: Pick<ObjectDeleter, 'delete'>
  readonly now: () => number
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
}

/** An upload that no completion has taken by then is not waited for any more (docs/api/releases.md#source-map-part). */
const UPLOADS_KEPT_MS = 48 * HOUR_MS

/**
 * Deletes the objects of uploads that were written more than two days ago, as a lifecycle rule would. It has one page of objects
 * in memory and may be interrupted anywhere. Throws the errors of the store.
 */
export async function sweepUploads({ store, objects, now, assertElected }: SweepUploadsDeps): Promise<void> {
  for await (const page of store.list(UPLOADS_PREFIX)) {
    await assertElected()
    const keptSinceMs = now() - UPLOADS_KEPT_MS
    const old = page.filter(({ lastModifiedMs }) => lastModifiedMs < keptSinceMs)
    await objects.delete(
      'uploads',
      old.map(({ key }) => key),
    )
  }
}
