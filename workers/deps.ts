import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { QueueName } from '../schemas/queues/names.ts'
import type { ReleaseStore } from '../shared/directory/release-store.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import type { PartitionFeed } from '../shared/queue/registry/queue-feed.ts'
import type { QueueServers } from '../shared/queue/registry/queue-servers.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { WorkersConfig } from './config.ts'
import type { WorkerMetrics } from './metrics.ts'
import type { LetterQuota } from './queue/letter-quota.ts'
import type { ConfirmedScripts } from './queue/payloads/confirmed-scripts.ts'
import type { PayloadReader } from './queue/payloads/payload-reader.ts'
import type { PartitionPlace } from './queue/payloads/payload-store.ts'
import type { AddJobs } from './queue/process-frames.ts'
import type { ColumnMemory } from './sink/column-memory.ts'
import type { ExpressFirst } from './sink/pace/express-first.ts'

/** One partition of a queue as the pools use it: connections to its server, and the partition that its payloads move to. */
export interface PartitionAccess {
  readonly redis: Redis
  readonly payloads: PayloadReader
  /** Undefined unless replicas must know a batch before its rows are inserted. */
  readonly confirmed?: ConfirmedScripts | undefined
  readonly addJobs: AddJobs
  readonly place: PartitionPlace
}

/** Everything that the pools of one process share. Only the wiring and the functions that start a pool see all of it. */
export interface PoolsDeps {
  readonly config: WorkersConfig
  /** Reaches what belongs to a queue as a whole, and the claims of uploads. */
  readonly redis: Redis
  /** Returns what is used of a partition, the same for each call. */
  readonly at: (queue: QueueName, partition: number) => PartitionAccess
  readonly servers: QueueServers
  /** The partitions that this process consumes. */
  readonly partitions: PartitionFeed
  readonly columnMemory: ColumnMemory
  readonly expressFirst: ExpressFirst
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  /** Bounds the dead letters of each surface. */
  readonly letterQuota: LetterQuota
  readonly logger: Logger
  readonly metrics: WorkerMetrics
  /** Aborted when work that waits for an unavailable store is left to the next worker. */
  readonly stopping: AbortSignal
}
