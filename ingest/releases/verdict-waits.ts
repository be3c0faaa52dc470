import type { Redis } from 'ioredis'
import { type Verdict, verdictSchema } from '../../schemas/queues/source-maps.ts'
import { FairShares } from '../../shared/concurrency/fair-shares.ts'
import { VERDICTS_CHANNEL, verdictKey } from '../../shared/queue/upload-keys.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** One request's slot among those that wait for a worker's verdict. */
export interface VerdictWait {
  /**
   * Resolves with the verdict on an attempt, or with undefined when there is none by the deadline. The worker continues
   * in either case.
   */
  verdict(attempt: string): Promise<Verdict | undefined>
  /** Frees the slot. Must be called once the request has its reply. */
  end(): void
}

/** The collaborators of `VerdictWaits`. `subscriber` is a connection for this purpose alone. */
interface VerdictWaitsDeps {
  readonly redis: Redis
  readonly subscriber: Redis
  readonly logger: Logger
}

/** The bounds of waits for verdicts. */
interface VerdictWaitsOptions {
  /** The number of slots, which surfaces share. One surface alone gets half of them. */
  readonly maxWaiting: number
  /** The longest wait for one verdict. */
  readonly deadlineMs: number
  /** Fallback polling interval. Pub/sub messages are lost if the connection drops. */
  readonly pollMs: number
  /** Called at the end of each wait. */
  readonly onSettled?: (found: boolean, durationMs: number) => void
}

/**
 * Waits for the verdicts that workers store in Redis. Reads the verdict of an attempt at the beginning of its wait, when
 * the channel announces the attempt, and at an interval. The interval reads the verdicts of all waits with one command.
 */
export class VerdictWaits {
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #logger: Logger
  readonly #options: VerdictWaitsOptions
  readonly #slots: FairShares
  readonly #timer: NodeJS.Timeout
  /** Waits by attempt. A request that was sent twice waits twice for the same attempt. */
  readonly #waiting = new Map<string, Set<(verdict: Verdict | undefined) => void>>()
  #stopped = false

  constructor({ redis, subscriber, logger }: VerdictWaitsDeps, options: VerdictWaitsOptions) {
    this.#redis = redis
    this.#subscriber = subscriber
    this.#logger = logger
    this.#options = options
    this.#slots = new FairShares(options.maxWaiting)
    if (subscriber.status === 'ready') this.#subscribe()
    subscriber.on('ready', () => this.#subscribe())
    subscriber.on('message', (_channel, attempt: string) => {
      if (this.#waiting.has(attempt)) void this.#read([attempt])
    })
    this.#timer = setInterval(() => void this.#read([...this.#waiting.keys()]), options.pollMs).unref()
  }

  /** The number of slots in use. */
  get size(): number {
    return this.#slots.used
  }

  /** Reserves a slot for a surface. Returns undefined when the surface has its share of the slots. */
  begin(surface: { readonly workspaceId: string; readonly surfaceId: string }): VerdictWait | undefined {
    const owner = `${surface.workspaceId}/${surface.surfaceId}`
    if (!this.#slots.take(owner, 1)) return undefined
    let ended = false
    return {
      verdict: attempt => this.#verdictOf(attempt),
      end: () => {
        if (!ended) this.#slots.give(owner, 1)
        ended = true
      },
    }
  }

  /** Ends every current and later wait without a verdict. */
  stop(): void {
    this.#stopped = true
    clearInterval(this.#timer)
    for (const attempt of [...this.#waiting.keys()]) this.#settle(attempt, undefined)
  }

  #subscribe(): void {
    this.#subscriber.subscribe(VERDICTS_CHANNEL).catch(error => {
      this.#logger.warn(errorFields(error), 'the channel of verdicts cannot be followed')
    })
  }

  async #read(attempts: readonly string[]): Promise<void> {
    if (attempts.length === 0) return
    try {
      const found = await this.#redis.mget(attempts.map(verdictKey))
      for (const [i, attempt] of attempts.entries()) {
        const text = found[i]
        if (text) this.#settle(attempt, verdictSchema.parse(JSON.parse(text)))
      }
    } catch (error) {
      this.#logger.debug(errorFields(error), 'verdicts could not be read')
    }
  }

  #settle(attempt: string, verdict: Verdict | undefined): void {
    for (const finish of this.#waiting.get(attempt) ?? []) finish(verdict)
  }

  #verdictOf(attempt: string): Promise<Verdict | undefined> {
    if (this.#stopped) return Promise.resolve(undefined)
    const startedAt = performance.now()
    return new Promise(resolve => {
      const waiters = this.#waiting.get(attempt) ?? new Set()
      const finish = (verdict: Verdict | undefined) => {
        clearTimeout(deadline)
        waiters.delete(finish)
        if (waiters.size === 0) this.#waiting.delete(attempt)
        this.#options.onSettled?.(verdict !== undefined, performance.now() - startedAt)
        resolve(verdict)
      }
      const deadline = setTimeout(() => finish(undefined), this.#options.deadlineMs)
      this.#waiting.set(attempt, waiters.add(finish))
      void this.#read([attempt])
    })
  }
}
