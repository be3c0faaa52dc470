import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { type Lane, queueKeys } from '../../../shared/queue/queue.ts'
import { errorFields } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'

/** A pause saves the times of this many inserts at most. They follow it at once, in addition to the one that is due. */
const SAVED_INSERTS = 3
/** The most intervals that a batch waits for its time, however many workers have reserved before it. */
export const LONGEST_WAIT = 4

/**
 * KEYS pace; ARGV interval in ms, 1 if the batch before was full. Reserves the next free time, and returns after how many ms
 * it comes. A batch that was full has not waited for its time, so that time is given back: the next one comes an interval from
 * now. It does not come earlier by more than the interval that was reserved for the full batch, because other workers wait for
 * theirs. Where they have reserved up to the bound, nothing is given back: more of them wait than the free time shows. A free
 * time beyond the bounds is replaced by the bound, so that many workers, or a clock of Redis that was set back, delay no batch
 * for longer.
 */
const RESERVE = `#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local interval = tonumber(ARGV[1])
local free = tonumber(redis.call('GET', KEYS[1]) or 0)
if ARGV[2] == '1' and free <= now + ${LONGEST_WAIT} * interval then
  free = math.max(free - interval, math.min(free, now + interval))
end
local at = math.min(math.max(free, now - ${SAVED_INSERTS} * interval), now + ${LONGEST_WAIT} * interval)
redis.call('SET', KEYS[1], at + interval, 'PX', at - now + ${SAVED_INSERTS + 1} * interval)
return math.max(0, at - now)
`

/** Dependencies of a pace. */
interface InsertPaceDeps {
  readonly redis: Pick<Redis, 'eval'>
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
    return (await this.#deps.redis.eval(RESERVE, 1, this.#key, this.#intervalMs, Number(wasFull))) as number
  }
}
