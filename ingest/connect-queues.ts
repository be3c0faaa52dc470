import type { Redis } from 'ioredis'
import type { StoreWatches } from '../shared/queue/durability-watch.ts'
import type { Queues } from '../shared/queue/queues.ts'
import type { ConnectTo } from '../shared/queue/redis.ts'
import type { FollowedQueues } from '../shared/queue/registry/queue-feed.ts'
import { UsedPartitions } from '../shared/queue/registry/used-queues.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { RedisClock } from './admission/redis-clock.ts'
import { LaneTargets } from './commit/lane-targets.ts'
import type { IngestConfig } from './config.ts'

/** Collaborators of the wiring of the queues. */
export interface QueuesWiring {
  readonly config: IngestConfig
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly queues: Queues
  /** Opens a connection that is closed when the process stops. Each kind of write has its own, so that none waits for another. */
  readonly connect: (to: ConnectTo, server: string) => Redis
}

/** Collaborators of `useQueues`. */
interface UsedQueuesParts {
  readonly followed: FollowedQueues
  readonly clockOf: (server: string) => RedisClock
  readonly durability: StoreWatches
}

/** Registers the queues that this process writes to. Returns a function that opens a lane to them. */
export function useQueues(
  { config, logger, lifecycle, queues, connect }: QueuesWiring,
  { followed, clockOf, durability }: UsedQueuesParts,
): () => LaneTargets {
  const lanes: LaneTargets[] = []
  const used = new UsedPartitions({
    queues,
    logger,
    count: config.QUEUE_PARTITIONS,
    onChange: partitions => {
      // Admission counts a queue before anything is in it.
      followed.add(partitions.map(({ partition }) => partition))
      for (const lane of lanes) lane.follow(partitions)
    },
  })
  lifecycle.onStop('registered queues', () => used.stop())
  return () => {
    const lane = new LaneTargets({
      queues,
      clockOf,
      connect(queue) {
        const redis = connect(queue.address, queue.server)
        durability.queues.of(queue).follow(redis)
        return redis
      },
      isKept: queue => durability.queues.of(queue).refuse() === undefined,
      mayUse: partition => used.mayUse(partition),
    })
    lanes.push(lane)
    return lane
  }
}
