import type { Redis } from 'ioredis'
import { type AdmittedQueue, INGEST_QUEUES, type IngestQueue } from '../schemas/queues/names.ts'
import { MIB } from '../schemas/units.ts'
import { FairShares } from '../shared/concurrency/fair-shares.ts'
import type { BufferPool } from '../shared/memory/buffer-pool.ts'
import { LANES, type Lane } from '../shared/queue/queue.ts'
import type { Queues, RedisQueue } from '../shared/queue/queues.ts'
import type { ConnectTo } from '../shared/queue/redis.ts'
import type { UsedQueue, UsedQueues } from '../shared/queue/registry/used-queues.ts'
import type { StoreWatches } from '../shared/queue/store-watches.ts'
import { replicasToConfirm } from '../shared/runtime/config.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Admission } from './admission/admission.ts'
import type { RedisClock } from './admission/redis-clock.ts'
import type { CommitFailures } from './commit/commit-failures.ts'
import { createConditionalCommit } from './commit/conditional-commit.ts'
import { type ConditionalSink, createConditionalSink } from './commit/conditional-sink.ts'
import { ExpressTraffic } from './commit/express-traffic.ts'
import { createFrameSink, type FrameSink } from './commit/frame-sink.ts'
import { GroupCommit } from './commit/group-commit.ts'
import type { QueueTarget, QueueTargets } from './commit/lane-writers.ts'
import { LargeCommit } from './commit/large-commit.ts'
import type { ReceiptIssuer } from './commit/receipt-issuer.ts'
import type { IngestConfig } from './config.ts'
import type { IngestMetrics } from './metrics.ts'

/** Collaborators that every part of the wiring uses. */
export interface Wiring {
  readonly config: IngestConfig
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly queues: Queues
  /** Opens a connection that is closed when the process stops. Each kind of write has its own, so that none waits for another. */
  readonly connect: (to: ConnectTo, server: string) => Redis
  readonly metrics: IngestMetrics
}

/** Collaborators that the sinks of all queues share. */
export interface SinkParts {
  readonly admission: Admission
  /** Returns the clock of a server of the queues. */
  readonly clockOf: (server: string) => RedisClock
  /** The queues that this process writes to. */
  readonly used: UsedQueues
  readonly failures: CommitFailures
  readonly receipts: ReceiptIssuer
  readonly durability: StoreWatches
  /** The memory of the payloads of all commits. */
  readonly memory: BufferPool
}

/**
 * Memory of payloads that is kept between commits, for all lanes: four buffers of a full commit. A busy lane takes one when a
 * request arrives and gives it back when Redis has confirmed it, so few are idle at once.
 */
export const IDLE_PAYLOAD_BYTES = 16 * MIB

/** Most bytes and requests of one commit. */
const COMMIT_BYTES = 4 * MIB
const COMMIT_FRAMES = 512

/** The sinks of the queues that are written by group commits. */
interface ConnectedSinks {
  readonly sinks: Readonly<Record<IngestQueue, FrameSink>>
  readonly lanes: readonly LaneTargets[]
}

/** Large frames that this process writes at once. One surface alone may write half of them. */
const MAX_LARGE_FRAMES = 8

/** Connects a sink of each queue that is written by group commits, with a lane of connections for each kind of commit. */
export function connectSinks(wiring: Wiring, parts: SinkParts): ConnectedSinks {
  const { config, logger, metrics, lifecycle, queues } = wiring
  const { admission, receipts, memory, failures, used, clockOf } = parts
  const durability = parts.durability.queues
  const lanes: LaneTargets[] = []
  const openLane = (): LaneTargets => {
    const lane = new LaneTargets({
      ...{ used, clockOf, areOnOneServer: queues.areOnOneServer },
      isKept: queue => durability.of(queue).refuse() === undefined,
      connect(queue) {
        const redis = wiring.connect(queue.address, queue.server)
        durability.of(queue).follow(redis)
        return redis
      },
    })
    lanes.push(lane)
    return lane
  }
  const largeLane = openLane()
  const slots = new FairShares(MAX_LARGE_FRAMES)
  const traffic = new ExpressTraffic()
  const sinks = INGEST_QUEUES.map(queue => {
    const shares = admission.sharesOf(queue)
    const priorityOf = (backlog: number) => shares.bulkPriority(backlog)
    const onCommit = (frames: number, bytes: number, durationMs: number) =>
      metrics.observeCommit(queue, frames, bytes, durationMs)
    const common = {
      queue,
      receipts,
      traffic,
      memory,
      logger,
      now: () => performance.now(),
      minReplicas: replicasToConfirm(config),
    }
    const commitOf = (lane: Lane): GroupCommit => {
      const commit = new GroupCommit(
        { ...common, targets: openLane().of(queue), lane },
        {
          maxCommitBytes: COMMIT_BYTES,
          maxCommitFrames: COMMIT_FRAMES,
          timeoutMs: config.COMMIT_TIMEOUT_MS,
          ...(lane === 'bulk' && { priorityOf }),
          onCommit,
        },
      )
      lifecycle.onStop(`${lane} commits of ${queue}`, () => commit.drain())
      return commit
    }
    const commits = Object.fromEntries(LANES.map(lane => [lane, commitOf(lane)])) as Record<Lane, GroupCommit>
    const largeCommit = new LargeCommit(
      { ...common, slots, targets: largeLane.of(queue) },
      { timeoutMs: config.COMMIT_TIMEOUT_MS, priorityOf, onCommit },
    )
    lifecycle.onStop(`large commits of ${queue}`, () => largeCommit.drain())
    return [queue, createFrameSink({ queue, commits, largeCommit, shares, failures, durability })] as const
  })
  return { sinks: Object.fromEntries(sinks) as Record<IngestQueue, FrameSink>, lanes }
}

/** Connects the sink of a queue whose requests are accepted on a condition, with its own connection. */
export function connectConditionalSink(
  { config, logger, metrics, lifecycle, queues, connect }: Wiring,
  parts: SinkParts,
  queue: 'source-maps' | 'completions',
): { readonly sink: ConditionalSink; readonly redis: Redis } {
  const { admission, clockOf, receipts, durability, failures, memory } = parts
  const only = queues.firstOf(queue)
  const redis = connect(only.address, only.server)
  const watch = durability.queues.of(only)
  watch.follow(redis)
  const shares = admission.sharesOf(queue)
  const commit = createConditionalCommit(
    {
      redis,
      queue: { ...only, name: queue },
      receipts,
      clock: clockOf(only.server),
      memory,
      logger,
      minReplicas: replicasToConfirm(config),
    },
    {
      timeoutMs: config.COMMIT_TIMEOUT_MS,
      priorityOf: backlog => shares.bulkPriority(backlog),
      onCommit: (frames, bytes, durationMs) => metrics.observeCommit(queue, frames, bytes, durationMs),
    },
  )
  lifecycle.onStop(`conditional commits of ${queue}`, () => commit.drain())
  return { sink: createConditionalSink(queue, { commit, shares, failures, durability: watch }), redis }
}

/** The collaborators of a lane. */
interface LaneTargetsDeps {
  readonly used: UsedQueues
  /** Opens the connection of the lane to the server of a queue. */
  readonly connect: (queue: RedisQueue) => Redis
  readonly clockOf: (server: string) => RedisClock
  /** Whether the server of a queue keeps what it confirms. */
  readonly isKept: (queue: RedisQueue) => boolean
  /** Whether all queues are on one server, which the sinks look at. */
  readonly areOnOneServer: boolean
}

/** The queues that one lane of an edge writes to, with a connection to each server. */
class LaneTargets {
  readonly #deps: LaneTargetsDeps
  readonly #connections = new Map<string, Redis>()
  readonly #known = new Map<RedisQueue, QueueTarget>()

  constructor(deps: LaneTargetsDeps) {
    this.#deps = deps
  }

  /** Whether a server is connected. */
  get isConnected(): boolean {
    for (const redis of this.#connections.values()) if (redis.status === 'ready') return true
    return false
  }

  /** Returns the equal queues of a name. */
  of(name: AdmittedQueue): QueueTargets {
    const { used } = this.#deps
    let known: readonly UsedQueue[] = []
    let targets: readonly QueueTarget[] = []
    const follow = () => {
      const current = used.of(name)
      if (current !== known) targets = current.map(queue => this.#targetOf(queue))
      known = current
      return targets
    }
    return {
      get current() {
        return follow()
      },
    }
  }

  #targetOf({ queue, sinceMs, mayUse }: UsedQueue): QueueTarget {
    const known = this.#known.get(queue)
    if (known !== undefined) return known
    const { clockOf, isKept, areOnOneServer } = this.#deps
    const clock = clockOf(queue.server)
    const target: QueueTarget = {
      queue,
      redis: this.#connectionTo(queue),
      clock,
      mayUse: areOnOneServer ? mayUse : () => mayUse() && isKept(queue) && clock.isKnown && clock.now() >= sinceMs,
    }
    this.#known.set(queue, target)
    return target
  }

  #connectionTo(queue: RedisQueue): Redis {
    const redis = this.#connections.get(queue.server) ?? this.#deps.connect(queue)
    this.#connections.set(queue.server, redis)
    return redis
  }
}
