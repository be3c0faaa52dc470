import { setTimeout as delay } from 'node:timers/promises'
import type { ObjectStore } from '../../shared/object-store/types.ts'

/** Kinds of objects that the upkeep deletes. */
export type DeletedKind = 'replays' | 'dead-letters' | 'source-maps' | 'releases' | 'uploads'

/** Dependencies of {@link ObjectDeleter}. */
interface ObjectDeleterDeps {
  readonly objects: Pick<ObjectStore, 'deleteMany'>
  readonly onDeleted: (kind: DeletedKind, objects: number) => void
  readonly stopping: AbortSignal
}

/** Objects that one process deletes in a second, so that the store has room for the objects that arrive. */
const OBJECTS_PER_SECOND = 1_000

/** Deletes objects at a bounded rate. */
export class ObjectDeleter {
  readonly #deps: ObjectDeleterDeps

  constructor(deps: ObjectDeleterDeps) {
    this.#deps = deps
  }

  /** Deletes the objects with these keys, as far as they exist. Waits no longer when stopping. Throws the errors of the store. */
  async delete(kind: DeletedKind, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return
    await this.#deps.objects.deleteMany(keys)
    this.#deps.onDeleted(kind, keys.length)
    await delay((keys.length / OBJECTS_PER_SECOND) * 1_000, undefined, { signal: this.#deps.stopping }).catch(() => {})
  }
}
