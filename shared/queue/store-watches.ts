import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { DurabilitySettings } from '../runtime/config.ts'
import type { Lifecycle } from '../runtime/lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { DurabilityWatch } from './durability-watch.ts'
import type { Queues, RedisQueue } from './queues.ts'

/** The collaborators of {@link QueueWatches}. */
interface QueueWatchesDeps {
  readonly queues: Queues
  readonly logger: Logger
  readonly reconnect: (server: string) => void
  readonly alsoRefuse?: (() => Problem | undefined) | undefined
}

/** Watches every server of the queues. In a cluster, one that breaks the promise stops its own queues only. */
class QueueWatches {
  readonly #deps: QueueWatchesDeps
  readonly #promise: DurabilitySettings
  readonly #watches = new Map<string, DurabilityWatch>()

  constructor(deps: QueueWatchesDeps, promise: DurabilitySettings) {
    this.#deps = deps
    this.#promise = promise
    this.of(deps.queues.firstOf('traces'))
  }

  /** Returns the watch of the server of a queue, which begins with the first call. */
  of({ server, redis }: RedisQueue): DurabilityWatch {
    let watch = this.#watches.get(server)
    if (watch === undefined) {
      const { logger, reconnect, alsoRefuse } = this.#deps
      const deps = { redis, store: 'queues', logger, reconnect: () => reconnect(server), alsoRefuse } as const
      watch = new DurabilityWatch(deps, this.#promise)
      this.#watches.set(server, watch)
    }
    return watch
  }

  /** Why no server keeps what it confirms, or undefined. */
  get fault(): string | undefined {
    const faults = [...this.#watches.values()].map(watch => watch.fault)
    return faults.includes(undefined) ? undefined : faults[0]
  }

  /** Whether each server keeps what it confirms. */
  get areAllKept(): boolean {
    return [...this.#watches.values()].every(watch => watch.fault === undefined)
  }

  /** How far the clock of this process was ahead, in ms, of that server whose clock differs most; undefined before a check. */
  get clockAheadMs(): number | undefined {
    const known = [...this.#watches.values()].flatMap(watch => watch.clockAheadMs ?? [])
    return known.toSorted((a, b) => Math.abs(b) - Math.abs(a))[0]
  }

  /** Returns INGEST_INFRA_UNAVAILABLE for a request that would be acknowledged while no server keeps it, or undefined. */
  refuse(): Problem | undefined {
    let problem: Problem | undefined
    for (const watch of this.#watches.values()) {
      problem = watch.refuse()
      if (problem === undefined) return undefined
    }
    return problem
  }

  /** Checks all servers soon, because a write was not confirmed. */
  recheck(): void {
    for (const watch of this.#watches.values()) watch.recheck()
  }

  /** Ends the checks. */
  stop(): void {
    for (const watch of this.#watches.values()) watch.stop()
  }
}

/** The watches of the Redis that a process writes to. They are one if both are the same server. */
export interface StoreWatches {
  readonly queues: QueueWatches
  readonly directory: DurabilityWatch
  /** Why the process is not ready, or undefined. */
  readonly fault: string | undefined
}

/** The collaborators of `watchStores`. */
interface StoreWatchesDeps {
  /** Connections to the servers of the queues, for this alone. */
  readonly queues: Queues
  readonly directory: Redis
  /** Replaces the connections of the process to a server of the queues, or to the directory. */
  readonly reconnect: (server: string | 'directory') => void
  /** Another reason to acknowledge nothing that both Redis would keep. */
  readonly alsoRefuse?: () => Problem | undefined
  readonly logger: Logger
  readonly metrics: Metrics
  readonly lifecycle: Pick<Lifecycle, 'onStop'>
}

/** Watches both Redis of a process, and shows which of them keep what they confirm. */
export function watchStores(
  { queues, directory, reconnect, alsoRefuse, logger, metrics, lifecycle }: StoreWatchesDeps,
  config: DurabilitySettings & { readonly REDIS_URL: string; readonly DIRECTORY_REDIS_URL: string },
): StoreWatches {
  const ofQueues = new QueueWatches({ queues, logger, reconnect, alsoRefuse }, config)
  lifecycle.onStop('durability of the queues', () => ofQueues.stop())
  const isShared = config.DIRECTORY_REDIS_URL === config.REDIS_URL
  // No write to the directory waits for replicas.
  const isAlone = config.REDIS_DURABILITY === 'replicated'
  const promise: DurabilitySettings = isAlone ? { ...config, REDIS_DURABILITY: 'fsync' } : config
  const reconnectDirectory = () => reconnect('directory')
  const deps = { redis: directory, store: 'directory', logger, reconnect: reconnectDirectory, alsoRefuse } as const
  const ofDirectory = isShared ? ofQueues.of(queues.firstOf('traces')) : new DurabilityWatch(deps, promise)
  lifecycle.onStop('durability of the directory', () => ofDirectory.stop())
  metrics.gauge({
    name: 'penstock_redis_durable',
    help: '1 if this Redis keeps what it confirms as REDIS_DURABILITY promises, else 0. /readyz has the reason.',
    labelNames: ['store'],
    collect() {
      this.set({ store: 'queues' }, ofQueues.areAllKept ? 1 : 0)
      this.set({ store: 'directory' }, ofDirectory.fault === undefined ? 1 : 0)
    },
  })
  watchClocks(metrics, { queues: ofQueues, directory: ofDirectory })
  return {
    queues: ofQueues,
    directory: ofDirectory,
    get fault() {
      return ofQueues.fault ?? ofDirectory.fault
    },
  }
}

function watchClocks(metrics: Metrics, stores: Readonly<Record<string, Pick<DurabilityWatch, 'clockAheadMs'>>>): void {
  metrics.gauge({
    name: 'penstock_clock_offset_seconds',
    help: 'How far the clock of this process is ahead of that of Redis, at the last check. Over 60 s for the queues: not ready.',
    labelNames: ['store'],
    collect() {
      for (const [store, { clockAheadMs }] of Object.entries(stores)) {
        if (clockAheadMs !== undefined) this.set({ store }, clockAheadMs / 1_000)
      }
    },
  })
}
