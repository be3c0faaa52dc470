import type { Redis } from 'ioredis'
import type { Queues, RedisQueue } from '../../shared/queue/queues.ts'
import type { RegisteredPartition } from '../../shared/queue/registry/registry.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import type { PartitionTarget, PartitionTargets } from './lane-writers.ts'

/** The collaborators of `LaneTargets`. */
interface LaneTargetsDeps {
  readonly queues: Queues
  /** Opens the connection of the lane to the server of a queue. */
  readonly connect: (queue: RedisQueue) => Redis
  readonly clockOf: (server: string) => RedisClock
  /** Whether the server of a queue keeps what it confirms. */
  readonly isKept: (queue: RedisQueue) => boolean
  /** Whether a partition is registered. */
  readonly mayUse: (partition: number) => boolean
}

/** The partitions that one lane of an edge writes to, with a connection to each server. */
export class LaneTargets implements PartitionTargets {
  readonly #deps: LaneTargetsDeps
  readonly #connections = new Map<string, Redis>()
  readonly #known = new Map<number, PartitionTarget>()
  #current: readonly PartitionTarget[]

  constructor(deps: LaneTargetsDeps) {
    this.#deps = deps
    this.#current = [this.#targetOf(deps.queues.first, 0)]
  }

  get current(): readonly PartitionTarget[] {
    return this.#current
  }

  /** Whether a server is connected. */
  get isConnected(): boolean {
    for (const redis of this.#connections.values()) if (redis.status === 'ready') return true
    return false
  }

  /** Takes the partitions that are registered. */
  follow(partitions: readonly RegisteredPartition[]): void {
    this.#current = partitions.map(({ partition, sinceMs }) => this.#targetOf(partition, sinceMs))
  }

  /** `sinceMs` is when the partition was registered. Nothing may be accepted before it, by the clock of any server. */
  #targetOf(partition: number, sinceMs: number): PartitionTarget {
    const known = this.#known.get(partition)
    if (known !== undefined) return known
    const { queues, clockOf, isKept, mayUse } = this.#deps
    const queue = queues.at('spans', partition)
    const redis = this.#connectionTo(queue)
    const clock = clockOf(queue.server)
    const target: PartitionTarget = {
      partition,
      redis,
      clock,
      node: queues.areOnOneServer ? () => '' : () => addressOf(redis),
      // The sinks look at a server that is alone.
      mayUse: queues.areOnOneServer
        ? () => mayUse(partition)
        : () => mayUse(partition) && isKept(queue) && clock.isKnown && clock.now() >= sinceMs,
    }
    this.#known.set(partition, target)
    return target
  }

  #connectionTo(queue: RedisQueue): Redis {
    let redis = this.#connections.get(queue.server)
    if (redis === undefined) {
      redis = this.#deps.connect(queue)
      this.#connections.set(queue.server, redis)
    }
    return redis
  }
}

/** Returns the address that a connection leads to. Several slots of a cluster may be on one node. */
function addressOf({ stream }: Redis): string {
  return `${stream?.remoteAddress}:${stream?.remotePort}`
}
