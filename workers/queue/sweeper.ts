import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { SWEEPER_KEYS } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import type { QueueConnections } from '../../shared/queue/queues.ts'
import { partitionsOf } from '../../shared/queue/registry/queue-tag.ts'
import { retirePartitions } from '../../shared/queue/registry/retire-queues.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { AddJobs } from './process-frames.ts'
import { sweep } from './sweep.ts'

/** Dependencies of the sweeper. */
interface SweeperDeps {
  readonly queues: QueueConnections
  /** Returns an adder of jobs to a partition. */
  readonly jobsAt: (queue: QueueName, partition: number) => AddJobs
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
      const { numbers } = await this.#deps.queues.partitions()
      const places = QUEUES.flatMap(queue => partitionsOf(queue, numbers).map(partition => ({ queue, partition })))
      const { queues } = this.#deps
      const byServer = Map.groupBy(places, ({ queue, partition }) => queues.at(queue, partition))
      await Promise.all([...byServer].map(([server, own]) => this.#sweepServer(server, own)))
      const retired = await retirePartitions(this.#deps.queues)
      if (retired.length > 0)
        this.#deps.logger.info({ partitions: retired }, 'partitions are empty and not used any more')
    } catch (error) {
      this.#warn('the partitions of the queues could not be read', error)
    }
    this.#sweptAtMs = performance.now()
    this.#isSweeping = false
  }

  /** A server that is not connected holds up no other. Its partitions are swept when it is back. */
  async #sweepServer(
    server: Redis,
    places: readonly { readonly queue: QueueName; readonly partition: number }[],
  ): Promise<void> {
    if (server.status !== 'ready') return
    for (const { queue, partition } of places) await this.#sweepOne(queue, partition)
  }

  async #sweepOne(queue: QueueName, partition: number): Promise<void> {
    const { queues, jobsAt, logger, now } = this.#deps
    const deps = {
      redis: queues.at(queue, partition),
      common: queues.common,
      addJobs: jobsAt(queue, partition),
      partition,
      logger,
      ...(now && { now }),
    }
    try {
      const found = await sweep(deps, queue, () => this.#isStopped || !this.#isElected)
      if (found > 0) logger.warn({ queue, partition, found }, 'added the jobs of payloads without one')
    } catch (error) {
      this.#warn(`sweep of ${queue} failed`, error)
    }
  }

  #warn(message: string, error: unknown): void {
    if (!this.#isStopped) this.#deps.logger.warn(errorFields(error), message)
  }
}
