import type { Redis } from 'ioredis'
import type { DeliverDeps } from '../alerts/calling/deliver.ts'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { ReleaseStore } from '../shared/directory/release-store.ts'
import type { InstallationWatch } from '../shared/installation/installation-watch.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import type { RedisQueue } from '../shared/queue/queues.ts'
import type { QueueFeed } from '../shared/queue/registry/queue-feed.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { WorkersConfig } from './config.ts'
import type { KnownDropping } from './dropping/known-dropping.ts'
import type { KnownRules } from './exceptions/known-rules.ts'
import type { WorkerMetrics } from './metrics.ts'
import type { LetterQuota } from './queue/letter-quota.ts'
import type { PageClaims } from './queue/page-claims.ts'
import type { ConfirmedScripts } from './queue/payloads/confirmed-scripts.ts'
import type { PayloadReader } from './queue/payloads/payload-reader.ts'
import type { AddJobs } from './queue/process-frames.ts'
import type { KnownScrubbing } from './scrubbing/known-scrubbing.ts'
import type { ColumnMemory } from './sink/column-memory.ts'
import type { ExpressFirst } from './sink/pace/express-first.ts'
import type { MapAccess } from './symbolication/map-access.ts'

/** How the pools use a queue. */
export interface QueueAccess {
  readonly payloads: PayloadReader
  /** Undefined unless replicas must know a batch before its rows are inserted. */
  readonly confirmed?: ConfirmedScripts | undefined
  readonly addJobs: AddJobs
}

/** Means of sending alerts. */
export interface DeliveriesAccess {
  readonly sending: Omit<DeliverDeps, 'onActive' | 'onAttempt'>
  readonly installation: Pick<InstallationWatch, 'whileMayUse'>
}

/** Everything that the pools of one process share. Only the wiring and the functions that start a pool see all of it. */
export interface PoolsDeps {
  readonly config: WorkersConfig
  /** Reaches what belongs to all queues of a name, and the claims of uploads. */
  readonly redis: Redis
  /** The queues that there are. */
  readonly queues: QueueFeed
  /** Returns how a queue is used, the same for each call. */
  readonly accessTo: (queue: RedisQueue) => QueueAccess
  readonly columnMemory: ColumnMemory
  readonly expressFirst: ExpressFirst
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  /** Returns the access to source maps, the same for each call. */
  readonly maps: () => MapAccess
  /** The rules by which exceptions are grouped. */
  readonly rules: KnownRules
  /** The rules by which values are scrubbed before they are stored. */
  readonly scrubbing: KnownScrubbing
  /** The rules by which records are dropped before they are stored. */
  readonly dropping: KnownDropping
  /** The numbers of pages whose requests were processed. */
  readonly pageClaims: PageClaims
  /** Bounds the dead letters of each surface. */
  readonly letterQuota: LetterQuota
  /** Undefined without DELIVERY_KEY, with which receivers are stored. */
  readonly deliveries?: DeliveriesAccess | undefined
  readonly logger: Logger
  readonly metrics: WorkerMetrics
  /** Aborted when work that waits for an unavailable store is left to the next worker. */
  readonly stopping: AbortSignal
}
