import { Budget } from '../../shared/concurrency/budget.ts'
import type { ColumnMemory } from './column-memory.ts'
import type { RowBatch } from './row-batch.ts'
import { RowsPool } from './rows-pool.ts'

/** Dependencies of the resources of a lane. */
interface LaneResourcesDeps {
  /** Queue and lane, under which the memory is accounted for. */
  readonly name: string
  readonly memory: ColumnMemory
  readonly createRows: () => RowBatch
}

/** Bounds of the resources of a lane. */
interface LaneResourcesOptions {
  readonly maxConcurrentInserts: number
  /** Payload bytes that are fetched from Redis and not yet decoded. */
  readonly maxFetchedBytes: number
}

/** Open batches of a lane at the same time: as many as wait for their insert (`LONGEST_WAIT`). */
const MAX_OPEN_BATCHES = 4

/**
 * Resources that the equal queues of a lane share, so that memory and inserts of a process do not grow with their number. A
 * queue that waits for rows holds none, and one that has rows waits for nothing but its insert.
 */
export class LaneResources {
  readonly fetched: Budget
  readonly slots: Budget
  readonly rowsPool: RowsPool
  readonly #createRows: () => RowBatch
  /** Batches that wait until no insert runs. */
  readonly #waiting = new Set<() => void>()
  #queues = 0
  #isClosing = false

  constructor({ name, memory, createRows }: LaneResourcesDeps, options: LaneResourcesOptions) {
    this.fetched = new Budget(options.maxFetchedBytes)
    this.slots = new Budget(options.maxConcurrentInserts, { onIdle: () => this.#endWaits() })
    this.#createRows = createRows
    this.rowsPool = new RowsPool(name, memory, Array.from({ length: options.maxConcurrentInserts }, createRows))
  }

  /** Adds a queue. */
  join(): void {
    this.#queues++
    if (this.#queues <= MAX_OPEN_BATCHES) this.rowsPool.add(this.#createRows())
  }

  /** Waits until no insert of the lane runs, at most this long, or until `close`. */
  async untilIdle(maxWaitMs: number): Promise<void> {
    if (this.slots.isIdle || this.#isClosing) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, maxWaitMs).unref()
    this.#waiting.add(resolve)
    await promise
    this.#waiting.delete(resolve)
    clearTimeout(timer)
  }

  /** Lets no batch wait from now on. */
  close(): void {
    this.#isClosing = true
    this.#endWaits()
  }

  #endWaits(): void {
    for (const endWait of this.#waiting) endWait()
  }
}
