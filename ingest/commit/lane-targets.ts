import type { Redis } from 'ioredis'
import type { QueueServers } from '../../shared/queue/registry/queue-servers.ts'
import type { RegisteredPartition } from '../../shared/queue/registry/registry.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import type { PartitionTarget, PartitionTargets } from './lane-writers.ts'

/** The collaborators of `LaneTargets`. */
interface LaneTargetsDeps {
  readonly servers: QueueServers
  /** Opens the connection of the lane to a server. */
  readonly connect: (server: string) => Redis
  readonly clockOf: (server: string) => RedisClock
  /** Whether a server keeps what it confirms. */
  readonly isKept: (server: string) => boolean
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
    this.#current = [this.#targetOf(deps.servers.first, 0)]
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
    const { servers, clockOf, isKept, mayUse } = this.#deps
    const server = servers.serverOf('spans', partition)
    const redis = this.#connectionTo(server)
    const clock = clockOf(server)
    const target: PartitionTarget = {
      partition,
      redis,
      clock,
      node: servers.isOne ? () => '' : () => addressOf(redis),
      // The sinks look at a server that is alone.
      mayUse: servers.isOne
        ? () => mayUse(partition)
        : () => mayUse(partition) && isKept(server) && clock.isKnown && clock.now() >= sinceMs,
    }
    this.#known.set(partition, target)
    return target
  }

  #connectionTo(server: string): Redis {
    let redis = this.#connections.get(server)
    if (redis === undefined) {
      redis = this.#deps.connect(server)
      this.#connections.set(server, redis)
    }
    return redis
  }
}

/** Returns the address that a connection leads to. Several slots of a cluster may be on one node. */
function addressOf({ stream }: Redis): string {
  return `${stream?.remoteAddress}:${stream?.remotePort}`
}
