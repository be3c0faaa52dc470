import type { Redis } from 'ioredis'
import type { RegisteredPartition } from '../../../shared/queue/partitions/registry.ts'
import type { RedisClock } from '../../admission/redis-clock.ts'
import type { PartitionTarget, PartitionTargets } from './partition-writer.ts'

/** The collaborators of `LaneTargets`. */
export interface LaneTargetsDeps {
  /** The connection of the lane. */
  readonly redis: Redis
  readonly clock: RedisClock
  readonly mayUse: (partition: number) => boolean
}

/** The partitions that one lane of an edge writes to, in one Redis. */
export class LaneTargets implements PartitionTargets {
  readonly #deps: LaneTargetsDeps
  readonly #known = new Map<number, PartitionTarget>()
  #current: readonly PartitionTarget[]

  constructor(deps: LaneTargetsDeps, first: number) {
    this.#deps = deps
    this.#current = [this.#targetOf(first)]
  }

  get current(): readonly PartitionTarget[] {
    return this.#current
  }

  /** Takes the partitions that are registered. */
  follow(partitions: readonly RegisteredPartition[]): void {
    this.#current = partitions.map(({ partition }) => this.#targetOf(partition))
  }

  #targetOf(partition: number): PartitionTarget {
    const known = this.#known.get(partition)
    if (known !== undefined) return known
    const { redis, clock, mayUse } = this.#deps
    const target = { partition, redis, clock, node: () => '', mayUse: () => mayUse(partition) }
    this.#known.set(partition, target)
    return target
  }
}
