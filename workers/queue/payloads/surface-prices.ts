import type { Redis } from 'ioredis'
import { EXPORT_DECOMPRESSED_BYTES } from '../../../schemas/http/limits.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { setBounded } from '../../../shared/memory/bounded-map.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { queueKeys, shareMember } from '../../../shared/queue/queue.ts'
import { estimatedWork, measuredWork, statedDecodedBytes } from '../../../shared/queue/request-work.ts'
import { errorFields } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'

/** The work of a surface's recent requests, as estimated and as measured. Both are moving averages. */
interface Work {
  estimated: number
  measured: number
  /** The price in Redis, or 1 if there is none. */
  written: number
}

/** Surfaces whose work is remembered by one pool. */
const MAX_SURFACES = 10_000
/** Prices in Redis. Only the highest are kept. */
const MAX_PRICES = 1_000
/** Prices below this are noise: the time of decoding depends on what else the machine does. */
const MIN_PRICE = 2
/** Part by which a price must change before it is written again. */
const MIN_CHANGE = 0.2
const AVERAGE_PART = 1 / 8
const FLUSH_MS = 1_000

/** Collaborators of `SurfacePrices`. */
interface SurfacePricesDeps {
  readonly redis: Redis
  readonly logger: Logger
}

/**
 * Compares the work that requests turn out to be with the work that the edge estimated, and keeps the ratio by surface in
 * Redis, from where the edge corrects its estimates. A surface whose requests cost more than they state thus pays with its
 * share of the queue.
 */
export class SurfacePrices {
  readonly #deps: SurfacePricesDeps
  readonly #key: string
  readonly #work = new Map<string, Work>()
  readonly #changed = new Map<string, Work>()
  readonly #timer: NodeJS.Timeout

  constructor(queue: QueueName, deps: SurfacePricesDeps) {
    this.#deps = deps
    this.#key = queueKeys(queue).prices
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Adds a request that decoded to this many bytes in this time. */
  observe(frame: PayloadFrame, decodedBytes: number, decodeMs: number): void {
    const { contentType, contentEncoding, body } = frame
    const stated = statedDecodedBytes(contentEncoding, body, EXPORT_DECOMPRESSED_BYTES)
    const estimated = estimatedWork(contentType, body.length, stated)
    const measured = measuredWork(contentType, decodedBytes, decodeMs)
    const member = shareMember(frame)
    let work = this.#work.get(member)
    if (work === undefined) {
      work = { estimated, measured, written: 1 }
      setBounded(this.#work, MAX_SURFACES, member, work)
    }
    work.estimated += (estimated - work.estimated) * AVERAGE_PART
    work.measured += (measured - work.measured) * AVERAGE_PART
    if (Math.abs(priceOf(work) - work.written) > MIN_CHANGE * work.written) this.#changed.set(member, work)
  }

  /** Writes the prices that have changed. Prices are advice, so a failed write is only logged. */
  async flush(): Promise<void> {
    if (this.#changed.size === 0) return
    const { redis, logger } = this.#deps
    const [raised, ended]: [(number | string)[], string[]] = [[], []]
    for (const [member, work] of this.#changed) {
      work.written = priceOf(work)
      if (work.written === 1) ended.push(member)
      else raised.push(work.written.toFixed(2), member)
    }
    this.#changed.clear()
    try {
      await Promise.all([
        ended.length > 0 && redis.zrem(this.#key, ...ended),
        raised.length > 0 && redis.zadd(this.#key, ...raised),
        redis.zremrangebyrank(this.#key, 0, -MAX_PRICES - 1),
      ])
    } catch (error) {
      logger.debug(errorFields(error), 'the prices of surfaces could not be written')
    }
  }

  /** Stops writing. */
  stop(): void {
    clearInterval(this.#timer)
  }
}

function priceOf({ estimated, measured }: Work): number {
  const price = measured / Math.max(1, estimated)
  return price < MIN_PRICE ? 1 : price
}
