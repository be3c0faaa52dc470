import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { type Lane, queueKeys } from '../../../shared/queue/queue.ts'
import { queueScript } from '../../../shared/queue/queue-script.ts'
import { errorFields } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'

/** A pause saves the times of this many inserts at most. They follow it at once, in addition to the one that is due. */
const SAVED_INSERTS = 3
/** The most intervals that a batch waits for its time, however many workers have reserved before it. */
export const LONGEST_WAIT = 4

const RESERVE = queueScript('reserve-insert')

/** Dependencies of a pace. */
interface InsertPaceDeps {
  readonly redis: Pick<Redis, 'evalsha' | 'eval'>
  readonly logger: Logger
}

/** The inserts that have a pace. */
export interface PacedInserts {
  readonly queue: QueueName
  readonly lane: Lane
  /** Time between two inserts. */
  readonly intervalMs: number
}

/**
 * The times at which a lane inserts batches that are not full, in all workers together (docs/decisions/028-insert-pace.md).
 * After a pause several batches are inserted at once, each as soon as it has rows. With steady traffic one interval lies
 * between two inserts, so that their mean over a day is bounded: the deduplication windows of ClickHouse are sized for it.
 */
export class InsertPace {
  readonly #deps: InsertPaceDeps
  readonly #key: string
  readonly #intervalMs: number

  constructor(deps: InsertPaceDeps, { queue, lane, intervalMs }: PacedInserts) {
    this.#deps = deps
    this.#key = queueKeys(queue).pace(lane)
    this.#intervalMs = intervalMs
  }

  /**
   * Reserves the time of one insert, and resolves when it has come: after one interval if Redis has not answered before.
   * `wasFull`: the batch before was inserted before its time.
   */
  async next(wasFull = false): Promise<void> {
    const requestedAt = performance.now()
    const interval = delay(this.#intervalMs, 0, { ref: false })
    const reserved = this.reserve(wasFull).catch(error => {
      this.#deps.logger.debug(errorFields(error), 'the time of an insert could not be reserved')
      return interval
    })
    const waitMs = await Promise.race([reserved, interval])
    // The time counts from the request: a busy worker reads the answer late.
    const restMs = waitMs - (performance.now() - requestedAt)
    if (restMs > 0) await delay(restMs, undefined, { ref: false })
  }

  /** Reserves the time of one insert, and returns after how many milliseconds it comes. */
  async reserve(wasFull = false): Promise<number> {
    const args = [this.#intervalMs, Number(wasFull), LONGEST_WAIT, SAVED_INSERTS]
    return (await RESERVE.run(this.#deps.redis, [this.#key], args)) as number
  }
}
