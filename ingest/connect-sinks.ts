import type { Redis } from 'ioredis'
import { type AdmittedQueue, INGEST_QUEUES, type IngestQueue } from '../schemas/queues/names.ts'
import { MIB } from '../schemas/units.ts'
import type { FairShares } from '../shared/concurrency/fair-shares.ts'
import type { BufferPool } from '../shared/memory/buffer-pool.ts'
import type { Lane } from '../shared/queue/queue.ts'
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
import type { ExpressTraffic } from './commit/express-traffic.ts'
import { GroupCommit, type GroupCommitOptions } from './commit/group-commit.ts'
import type { QueueTarget, QueueTargets } from './commit/lane-writers.ts'
import type { ReceiptIssuer } from './commit/receipt-issuer.ts'
import { createSink, type Sink } from './commit/sink.ts'
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
  /** The express commits of the process. */
  readonly traffic: ExpressTraffic
  /** Frames over 4 MiB that this process writes at once. */
  readonly largeSlots: FairShares
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
  readonly sinks: Readonly<Record<IngestQueue, Sink>>
  readonly lanes: readonly LaneTargets[]
}

/** Large frames that this process writes at once. One surface alone may write half of them. */
export const MAX_LARGE_FRAMES = 8

/** Connects a sink of each queue that is written by group commits, with a lane of connections for each kind of commit. */
export function connectSinks(wiring: Wiring, parts: SinkParts): ConnectedSinks {
  const { queues } = wiring
  const { failures, used, clockOf, largeSlots: slots } = parts
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
  const sinks = INGEST_QUEUES.map(queue => {
    const commit = commitsOf(wiring, parts, queue)
    const commitsOfLane = (lane: Lane) => commit(lane, openLane().of(queue))
    const commits = { express: commitsOfLane('express'), bulk: commitsOfLane('bulk') }
    const large = { commit: commit('bulk', largeLane.of(queue)), slots }
    const shares = parts.admission.sharesOf(queue)
    return [queue, createSink({ queue, commits, large, shares, failures, durability })] as const
  })
  return { sinks: Object.fromEntries(sinks) as Record<IngestQueue, Sink>, lanes }
}

/** Connects the sink of a queue whose requests are accepted on a condition, with its own connection. */
export function connectConditionalSink(
  wiring: Wiring,
  parts: SinkParts,
  queue: 'source-maps' | 'completions',
): { readonly sink: Sink; readonly redis: Redis } {
  const { queues, connect } = wiring
  const { admission, clockOf, failures, largeSlots: slots } = parts
  const only = queues.firstOf(queue)
  const redis = connect(only.address, only.server)
  const durability = parts.durability.queues.of(only)
  durability.follow(redis)
  const mayUse = () => durability.refuse() === undefined
  const targets = { current: [{ queue: only, redis, clock: clockOf(only.server), mayUse }] }
  const commit = commitsOf(wiring, parts, queue)
  const commits = { express: commit('express', targets), bulk: commit('bulk', targets) }
  const large = { commit: commits.bulk, slots }
  const shares = admission.sharesOf(queue)
  return { sink: createSink({ queue, commits, large, shares, failures, durability }), redis }
}

/** Returns a function that creates the commits of a lane of a queue. */
function commitsOf(
  { config, logger, metrics, lifecycle }: Wiring,
  { admission, receipts, traffic, memory }: SinkParts,
  queue: AdmittedQueue,
): (lane: Lane, targets: QueueTargets) => GroupCommit {
  const shares = admission.sharesOf(queue)
  const now = () => performance.now()
  const common = { queue, receipts, traffic, memory, logger, now, minReplicas: replicasToConfirm(config) }
  const options: GroupCommitOptions = {
    maxCommitBytes: COMMIT_BYTES,
    maxCommitFrames: COMMIT_FRAMES,
    timeoutMs: config.COMMIT_TIMEOUT_MS,
    priorityOf: backlog => shares.bulkPriority(backlog),
    onCommit: (frames, bytes, durationMs) => metrics.observeCommit(queue, frames, bytes, durationMs),
  }
  return (lane, targets) => {
    const commit = new GroupCommit({ ...common, targets, lane }, options)
    lifecycle.onStop(`${lane} commits of ${queue}`, () => commit.drain())
    return commit
  }
}

/** The collaborators of a lane. */
interface LaneTargetsDeps {
  readonly used: UsedQueues
  /** Opens the connection of the lane to the server of a queue. */
  readonly connect: (queue: RedisQueue) => Redis
  readonly clockOf: (server: string) => RedisClock
  /** Whether the server of a queue keeps what it confirms. */
  readonly isKept: (queue: RedisQueue) => boolean
  /** Whether all queues are on one server. */
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
      mayUse: () => mayUse() && isKept(queue) && (areOnOneServer || (clock.isKnown && clock.now() >= sinceMs)),
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
