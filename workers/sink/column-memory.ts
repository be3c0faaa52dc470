import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { FairShares } from '../../shared/concurrency/fair-shares.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'

/** Memory of the columns of all row batches of a process, before the batches that are always admitted. */
const COLUMN_MEMORY_BYTES = 176 * MIB
/** A pool may hold at most eight times what is free: eight ninths if it is the only one with work, a third of three. */
const SHARE_WEIGHT = 8
/** Large jobs of a lane that wait for their turn. Further ones are retried later, so that they do not occupy a whole pool. */
const MAX_WAITING_LARGE = 8
/** How long a large job waits for its turn or for memory before it is retried later. */
const LARGE_WAIT_MS = 30_000

/**
 * Memory that the pools of one process share for columns. A pool that holds its share waits until inserts have finished,
 * and no pool can take all of it. A pool that holds nothing is always admitted, so a pool whose inserts are stuck never
 * stops another.
 */
export class ColumnMemory {
  readonly #shares: FairShares
  readonly #large = new Budget(1)
  readonly #waitingLarge: Record<Lane, number> = { express: 0, bulk: 0 }
  /** Bytes of pools that were admitted although no share was free. */
  readonly #admitted = new Map<string, number>()
  readonly #givers: (() => void)[] = []
  #waiting: (() => void)[] = []

  constructor(limitBytes = COLUMN_MEMORY_BYTES) {
    this.#shares = new FairShares(limitBytes, SHARE_WEIGHT)
  }

  /** Adds a function that gives back memory which is kept for later. It runs when a reservation would have to wait. */
  onPressure(giveBack: () => void): void {
    this.#givers.push(giveBack)
  }

  /** Reserves memory for a pool and returns true, or returns false if the pool must wait. */
  take(pool: string, bytes: number): boolean {
    const takeShare = () => !this.#admitted.has(pool) && this.#shares.take(pool, bytes)
    if (takeShare()) return true
    this.giveBackIdle()
    if (takeShare()) return true
    if (this.#admitted.has(pool) || this.#shares.heldBy(pool) > 0) return false
    this.#admitted.set(pool, bytes)
    return true
  }

  /** Waits until the memory can be reserved. Throws a TransientError when the signal fires before. */
  async reserve(pool: string, bytes: number, abortSignal?: AbortSignal): Promise<void> {
    while (!this.take(pool, bytes)) {
      if (abortSignal?.aborted) throw new TransientError('the memory for columns is in use')
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(resolve)
      abortSignal?.addEventListener('abort', () => resolve(), { once: true })
      await promise
    }
  }

  /** Gives reserved memory back. */
  give(pool: string, bytes: number): void {
    if (bytes === 0) return
    const admitted = this.#admitted.get(pool) ?? 0
    const returned = Math.min(admitted, bytes)
    if (returned === admitted) this.#admitted.delete(pool)
    else this.#admitted.set(pool, admitted - returned)
    if (bytes > returned) this.#shares.give(pool, bytes - returned)
    this.wake()
  }

  /** Lets the pools that wait try again, because memory was given back or rows are idle that could give theirs back. */
  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  /**
   * Lets all idle rows give their memory back, for other work of the process that needs much at once. A flood of small requests
   * leaves up to 100 MB of it, and most processes never need it again.
   */
  giveBackIdle(): void {
    for (const giveBack of this.#givers) giveBack()
  }

  /**
   * Runs a large job while no other large job of the process is in progress. Throws a TransientError if others have waited
   * before it for too long: BullMQ retries the job later. The signal fires when memory must be available.
   */
  async runLarge<T>(lane: Lane, work: (deadline: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#waitingLarge[lane] >= MAX_WAITING_LARGE) {
      throw new TransientError('other large requests wait to be decoded')
    }
    const deadline = AbortSignal.timeout(LARGE_WAIT_MS)
    this.#waitingLarge[lane]++
    const release = await this.#large.acquire(1, { lane, signal: deadline }).finally(() => this.#waitingLarge[lane]--)
    try {
      return await work(deadline)
    } finally {
      release()
    }
  }
}
