import type { Redis } from 'ioredis'
import type { StoreWatches } from '../shared/queue/durability-watch.ts'
import type { ConnectTo } from '../shared/queue/redis.ts'
import { FollowedPartitions } from '../shared/queue/registry/queue-feed.ts'
import { QueueLinks } from '../shared/queue/registry/queue-links.ts'
import type { QueueServers } from '../shared/queue/registry/queue-servers.ts'
import { UsedPartitions } from '../shared/queue/registry/used-queues.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { RedisClock } from './admission/redis-clock.ts'
import { LaneTargets } from './commit/lane-targets.ts'
import type { IngestConfig } from './config.ts'

/** Collaborators of the wiring of partitions. */
export interface PartitionsWiring {
  readonly config: IngestConfig
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly servers: QueueServers
  /** Opens a connection that is closed when the process stops. Each kind of write has its own, so that none waits for another. */
  readonly connect: (to: ConnectTo, server: string) => Redis
  /** Opens one to the first server, or to all masters of a cluster. */
  readonly connectCommon: () => Redis
}

/** The partitions of all edges, with connections for the reads of their counters. */
export interface Followed {
  readonly links: QueueLinks
  readonly partitions: FollowedPartitions
}

/** Follows the partitions that any edge has registered. */
export function followPartitions({ logger, lifecycle, servers, connect, connectCommon }: PartitionsWiring): Followed {
  const links = new QueueLinks({ servers, common: connectCommon(), connect })
  const partitions = new FollowedPartitions({ queues: links, logger })
  lifecycle.onStop('partitions of others', () => partitions.stop())
  return { links, partitions }
}

/** Collaborators of `usePartitions`. */
interface UsedPartitionsParts {
  readonly queues: QueueLinks
  readonly followed: Followed
  readonly clockOf: (server: string) => RedisClock
  readonly durability: StoreWatches
}

/** Registers the partitions that this process writes to. Returns a function that opens a lane to them. */
export function usePartitions(
  { config, logger, lifecycle, servers, connect }: PartitionsWiring,
  { queues, followed, clockOf, durability }: UsedPartitionsParts,
): () => LaneTargets {
  const lanes: LaneTargets[] = []
  const used = new UsedPartitions({
    queues,
    logger,
    count: config.QUEUE_PARTITIONS,
    onChange: partitions => {
      // Admission counts a partition before anything is in it.
      followed.partitions.add(partitions.map(({ partition }) => partition))
      for (const lane of lanes) lane.follow(partitions)
    },
  })
  lifecycle.onStop('partitions', () => used.stop())
  const isKept = (server: string) => durability.queues.of(server).refuse() === undefined
  const mayUse = (partition: number) => used.mayUse(partition)
  return () => {
    const connectOne = (server: string) => {
      const redis = connect(servers.addressOf(server), server)
      durability.queues.of(server).follow(redis)
      return redis
    }
    const lane = new LaneTargets({ servers, connect: connectOne, clockOf, isKept, mayUse })
    lanes.push(lane)
    return lane
  }
}
