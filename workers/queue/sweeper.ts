import { randomUUID } from 'node:crypto'
import { SWEEPER_KEYS } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import type { Queues, RedisQueue } from '../../shared/queue/queues.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { AddJobs } from './process-frames.ts'
import { sweep } from './sweep.ts'

/** Dependencies of the sweeper. */
interface SweeperDeps {
  readonly queues: Queues
  /** Returns the adder of the jobs of a queue. */
  readonly addJobsOf: (queue: RedisQueue) => AddJobs
  readonly logger: Logger
  readonly now?: () => number
}

/** How long the lease of a sweeper lasts that does not renew it, because its process was killed or is suspended. */
const LEASE_MS = 10_000
/** The least time between two attempts to take the lease of another process. */
const MIN_WAIT_MS = 100

const ELECT = queueScript('elect-sweeper')
const RESIGN = queueScript('resign-sweeper')

/**
 * Sweeps all queues in one process of the installation, whichever pools it has. Every worker takes part in the election: one
 * holds the lease, and the others try again when it would expire. Two that sweep at the same time do no harm.
 */
export class Sweeper {
  readonly #deps: SweeperDeps
  readonly #intervalMs: number
  readonly #token = randomUUID()
  #isElected = false
  #isSweeping = false
  #isStopped = false
  #sweptAtMs = Number.NEGATIVE_INFINITY
  #timer = setTimeout(() => void this.#tick(), 0)

  /** Starts at once. `intervalMs` is the time between two sweeps. */
  constructor(deps: SweeperDeps, intervalMs: number) {
    this.#deps = deps
    this.#intervalMs = intervalMs
  }

  /** Whether this process is the one that sweeps. */
  get isElected(): boolean {
    return this.#isElected
  }

  /** Does not wait. A sweep may be interrupted anywhere, and with a hanging Redis it would use up the deadline of the pools. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    if (this.#isElected) RESIGN.run(this.#deps.queues.common, [SWEEPER_KEYS.lease], [this.#token]).catch(() => {})
  }

  /** Takes or renews the lease, also while a sweep is running. */
  async #tick(): Promise<void> {
    let nextMs = Math.min(LEASE_MS / 3, this.#intervalMs)
    try {
      const redis = this.#deps.queues.common
      const heldForMs = Number(await ELECT.run(redis, [SWEEPER_KEYS.lease], [this.#token, LEASE_MS]))
      this.#isElected = heldForMs === 0
      if (!this.#isElected) nextMs = Math.max(heldForMs, MIN_WAIT_MS)
      else if (performance.now() - this.#sweptAtMs >= this.#intervalMs) void this.#sweepAll()
    } catch (error) {
      this.#warn('the lease of the sweeper could not be taken', error)
    }
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#tick(), nextMs)
  }

  async #sweepAll(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      const { queues, logger } = this.#deps
      const byServer = Map.groupBy((await queues.read()).all, ({ server }) => server)
      await Promise.all([...byServer.values()].map(own => this.#sweepServer(own)))
      const retired = await queues.retire()
      if (retired.length > 0) logger.info({ numbers: retired }, 'queues are empty and not used any more')
    } catch (error) {
      this.#warn('the list of queues could not be read', error)
    }
    this.#sweptAtMs = performance.now()
    this.#isSweeping = false
  }

  /** A server that is not connected holds up no other. Its queues are swept when it is back. */
  async #sweepServer(queues: readonly RedisQueue[]): Promise<void> {
    for (const queue of queues) if (queue.redis.status === 'ready') await this.#sweepOne(queue)
  }

  async #sweepOne(queue: RedisQueue): Promise<void> {
    const { queues, addJobsOf, logger, now } = this.#deps
    const deps = { queue, common: queues.common, addJobs: addJobsOf(queue), logger, ...(now && { now }) }
    try {
      const found = await sweep(deps, () => this.#isStopped || !this.#isElected)
      if (found > 0) logger.warn({ queue: queue.tag, found }, 'added the jobs of payloads without one')
    } catch (error) {
      this.#warn(`sweep of ${queue.tag} failed`, error)
    }
  }

  #warn(message: string, error: unknown): void {
    if (!this.#isStopped) this.#deps.logger.warn(errorFields(error), message)
  }
}
