import type { PoolName } from '../schemas/queues/names.ts'
import { MINUTE_MS } from '../schemas/units.ts'

/** A pool with work that has settled nothing for this long is wedged, unless its attempts show that it waits for a store. */
const WEDGED_AFTER_MS = 2 * MINUTE_MS
/**
 * A pool whose attempts all fail for this long is wedged if its store serves another pool of the process meanwhile. It is
 * longer than a batch that is refused again and again needs to be divided (`CONDEMN_AFTER`).
 */
const FAILING_AFTER_MS = 30 * MINUTE_MS

/** The pools that write to the object store. All others write to ClickHouse. */
const OBJECT_QUEUES: readonly PoolName[] = ['replay', 'source-maps', 'completions', 'dead-letters']

/** A pool as its liveness is observed. */
interface ObservedPool {
  readonly queue: PoolName
  readonly activeJobs: number
  /** Time of the last step that succeeded: a payload was settled, or a store confirmed a part of the work. Unix ms. */
  readonly lastProgressAt: number
  /** Time of the last attempt of an operation, successful or not. Unix ms. */
  readonly lastAttemptAt: number
}

/**
 * Decides whether a process must be restarted. A pool makes progress when payloads are settled, not when it repeats what
 * fails. But a store that is unavailable is no reason to restart: its pools continue with their attempts, and a restart would
 * only repeat them. So a pool with work and without progress is wedged
 *
 * - after two minutes, if it makes no attempts either (no job was taken, or a job hangs);
 * - after 30 minutes, if its attempts fail while its store serves another pool of this process.
 */
export class Liveness {
  readonly #pools: readonly ObservedPool[]
  readonly #now: () => number
  /** When each pool was last seen without work. */
  readonly #idleAt = new Map<PoolName, number>()

  constructor(pools: readonly ObservedPool[], now: () => number = Date.now) {
    this.#pools = pools
    this.#now = now
    for (const { queue } of pools) this.#idleAt.set(queue, now())
  }

  /**
   * Notes how many jobs wait in each queue, regularly. Undefined while Redis does not answer: every pool waits for it then,
   * and a restart would only make them wait again.
   */
  observe(waitingJobs: ReadonlyMap<PoolName, number> | undefined): void {
    for (const { queue, activeJobs } of this.#pools) {
      const hasWork = activeJobs > 0 || (waitingJobs?.get(queue) ?? 0) > 0
      if (waitingJobs === undefined || !hasWork) this.#idleAt.set(queue, this.#now())
    }
  }

  /** Returns the queues whose pools are wedged. */
  wedged(): PoolName[] {
    return this.#pools.filter(pool => this.#isWedged(pool)).map(({ queue }) => queue)
  }

  #isWedged(pool: ObservedPool): boolean {
    const now = this.#now()
    const stuckMs = now - Math.max(pool.lastProgressAt, this.#idleAt.get(pool.queue) ?? 0)
    if (stuckMs <= WEDGED_AFTER_MS) return false
    if (now - pool.lastAttemptAt > WEDGED_AFTER_MS) return true
    return stuckMs > FAILING_AFTER_MS && this.#isStoreServing(pool, now)
  }

  #isStoreServing({ queue }: ObservedPool, now: number): boolean {
    const isObjects = OBJECT_QUEUES.includes(queue)
    return this.#pools.some(
      other =>
        other.queue !== queue &&
        OBJECT_QUEUES.includes(other.queue) === isObjects &&
        now - other.lastProgressAt <= WEDGED_AFTER_MS,
    )
  }
}
