import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import { errorFields } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { RedisMemory } from '../runtime/redis-memory.ts'

/**
 * The share of the memory of Redis above which nothing is added to the directory. It is over the share above which
 * telemetry is refused, and leaves room for revocations and, if the queues are in the same Redis, for the workers.
 */
const MAX_MEMORY_SHARE = 0.8
const POLL_MS = 1_000
const RETRY_S = 30

const NEARLY_FULL: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message: 'the store of workspaces and releases is nearly full; retry after the delay',
  retryAfterSeconds: RETRY_S,
}

/** Follows how full the Redis of the directory is, so that no request fills it up. */
export class DirectoryMemory {
  readonly #redis: Redis
  readonly #logger: Logger
  readonly #memory: RedisMemory
  readonly #timer: NodeJS.Timeout
  #isNearlyFull = false
  #isReading = false

  constructor({ redis, logger }: { readonly redis: Redis; readonly logger: Logger }, pollMs = POLL_MS) {
    this.#redis = redis
    this.#logger = logger
    this.#memory = new RedisMemory(logger, 'directory')
    this.#timer = setInterval(() => void this.#read(), pollMs).unref()
    redis.on('ready', () => void this.#read())
    void this.#read()
  }

  /** Returns INGEST_BACKPRESSURE for a request that would add a record, or undefined. Deletions are never refused. */
  refuse(): Problem | undefined {
    return this.#isNearlyFull ? NEARLY_FULL : undefined
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #read(): Promise<void> {
    if (this.#isReading || this.#redis.status !== 'ready') return
    this.#isReading = true
    try {
      this.#isNearlyFull = this.#memory.usedShare(await this.#redis.info('memory')) >= MAX_MEMORY_SHARE
    } catch (error) {
      this.#logger.debug(errorFields(error), 'the memory of the directory could not be read')
    } finally {
      this.#isReading = false
    }
  }
}
