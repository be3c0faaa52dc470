import type { Redis } from 'ioredis'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import type { UsedQueue, UsedQueues } from '../../shared/queue/registry/used-queues.ts'
import type { RedisClock } from '../admission/redis-clock.ts'
import type { QueueTarget, QueueTargets } from './lane-writers.ts'

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
export class LaneTargets {
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
