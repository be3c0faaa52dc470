import { connectClickHouse } from '../clickhouse/connect.ts'
import type { QueueName } from '../schemas/queues/names.ts'
import { connectBackups } from '../shared/backup/connect.ts'
import { adoptOnConnect, whenAdopted } from '../shared/directory/adopt.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { createCallObserver } from '../shared/object-store/call-metrics.ts'
import { connectObjectStore } from '../shared/object-store/connect.ts'
import { watchStores } from '../shared/queue/durability-watch.ts'
import { onOneServer, type QueueConnections } from '../shared/queue/partitions/connections.ts'
import { FollowedPartitions } from '../shared/queue/partitions/partition-feed.ts'
import { connectConsumer, connectProducer } from '../shared/queue/redis.ts'
import { watchQueueAges } from '../shared/queue/watch/queue-ages.ts'
import { watchWatermarks } from '../shared/queue/watch/watch-watermarks.ts'
import { replicasToConfirm } from '../shared/runtime/config.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import type { RegularBackupsDeps } from './back-up-regularly.ts'
import { ColumnMemory } from './batch/column-memory.ts'
import { ExpressFirst } from './batch/schedule/express-first.ts'
import { consumedPartitions, letterLimits, type WorkersConfig } from './config.ts'
import type { PartitionAccess, PoolsDeps } from './deps.ts'
import type { WorkerMetrics } from './metrics.ts'
import { readInternalBacklogs } from './queue/backlog.ts'
import { RedisLetterQuota } from './queue/letter-quota.ts'
import { ConfirmedScripts } from './queue/payloads/confirmed-scripts.ts'
import { openPayloadReader } from './queue/payloads/payload-reader.ts'
import type { AddJobs } from './queue/process-frames.ts'
import { createJobAdder } from './queue/sweep.ts'
import { StoreAccess, usesObjects } from './store-access.ts'
import type { UpkeepDeps } from './upkeep/start-upkeep.ts'
import { createUpkeepMetrics } from './upkeep/upkeep-metrics.ts'

/** Collaborators of the wiring. `metrics` are those of the pools, on top of `processMetrics`. */
interface WorkersWiring {
  /** The pools of the process. */
  readonly queues: readonly QueueName[]
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly metrics: WorkerMetrics
  readonly processMetrics: Metrics
}

/** The dependencies of the pools and of the backups, connected. */
export interface ConnectedWorkers {
  readonly deps: PoolsDeps
  readonly queues: QueueConnections
  /** The dependencies of the backups of the directory. */
  readonly directory: RegularBackupsDeps
  readonly upkeep: UpkeepDeps
  /** Returns true, or the reason why this process should not be relied on. */
  readonly isReady: () => true | string
}

/** Connects what the pools of a process and its backups need. `lifecycle` closes the connections after the pools that use them. */
export function connectWorkers(
  config: WorkersConfig,
  { queues, logger, lifecycle, metrics, processMetrics }: WorkersWiring,
  stopping: AbortSignal,
): ConnectedWorkers {
  const redis = connectConsumer(config.REDIS_URL, logger)
  lifecycle.onStop('redis', () => redis.disconnect())
  const links = onOneServer(redis)
  metrics.watchBacklogs(() => readInternalBacklogs(links))
  watchQueueAges(processMetrics, links)
  watchWatermarks(processMetrics, links)
  const partitions = new FollowedPartitions({ queues: links, logger, includes: consumedPartitions(config) })
  lifecycle.onStop('partitions', () => partitions.stop())
  const directoryRedis = connectConsumer(config.CONTROL_REDIS_URL, logger)
  lifecycle.onStop('directory redis', () => directoryRedis.disconnect())
  const reconnect = (url: string) => (url === config.REDIS_URL ? redis : directoryRedis).disconnect(true)
  const stores = { queues: redis, directory: directoryRedis, reconnect }
  const durability = watchStores({ ...stores, logger, metrics: processMetrics, lifecycle }, config)
  const payloads = openPayloadReader(redis, logger, { maxIdleBytes: config.POOL_FETCHED_BYTES })
  lifecycle.onStop('payload reader', () => payloads.close())
  const confirmed = openConfirmedScripts(config, logger, lifecycle)
  const clickhouse = connectClickHouse(config)
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  const objects = connectObjectStore(config, undefined, createCallObserver(processMetrics))
  lifecycle.onStop('object store', () => objects.close())
  const adoption = adoptOnConnect(directoryRedis, logger)
  const at = accessTo(links, { payloads, confirmed })
  const deps: PoolsDeps = {
    config,
    redis,
    at,
    partitions,
    columnMemory: new ColumnMemory(),
    expressFirst: new ExpressFirst(),
    clickhouse,
    objects,
    releases: whenAdopted(createReleaseStore(directoryRedis), adoption),
    letterQuota: new RedisLetterQuota(redis, letterLimits(config), metrics.observeLetters),
    logger,
    metrics,
    stopping,
  }
  const access = new StoreAccess({ clickhouse, objects: usesObjects(queues) ? objects : undefined })
  lifecycle.onStop('access to the stores', () => access.stop())
  const isReady = () =>
    redis.status === 'ready' ? (durability.fault ?? access.fault ?? true) : 'redis is not connected'
  const store = createDirectory(directoryRedis)
  const backups = connectBackups(objects, config)
  const upkeep: UpkeepDeps = {
    queues: links,
    directoryRedis,
    clickhouse: connectClickHouse(config, { requestTimeoutMs: UPKEEP_TIMEOUT_MS }),
    objects,
    retentionDays: config.RETENTION_DAYS,
    logger,
    metrics: createUpkeepMetrics(processMetrics),
  }
  lifecycle.onStop('clickhouse of the upkeep', () => upkeep.clickhouse.close())
  return {
    deps,
    queues: links,
    upkeep,
    directory: { redis: directoryRedis, store, adoption, backups, metrics, logger },
    isReady,
  }
}

/** Returns what pools use of each partition. A server has one reader of payloads, and a partition one adder of jobs. */
export function accessTo(
  queues: QueueConnections,
  { payloads, confirmed }: Pick<PartitionAccess, 'payloads' | 'confirmed'>,
): PoolsDeps['at'] {
  const adders = new Map<number, AddJobs>()
  return (queue, partition) => {
    const redis = queues.at(queue, partition)
    const movesTo = queues.movesTo(queue, partition)
    let addJobs = adders.get(movesTo)
    if (addJobs === undefined) {
      addJobs = createJobAdder(redis, movesTo).add
      adders.set(movesTo, addJobs)
    }
    return { redis, payloads, confirmed, addJobs, place: { partition, movesTo } }
  }
}

/** How long Redis may take to run a script that replicas confirm, and they to confirm it. */
const CONFIRMED_SCRIPT_MS = 5_000

function openConfirmedScripts(
  config: WorkersConfig,
  logger: Logger,
  lifecycle: Lifecycle,
): ConfirmedScripts | undefined {
  const replicas = replicasToConfirm(config)
  if (replicas === 0) return undefined
  const redis = connectProducer(config.REDIS_URL, CONFIRMED_SCRIPT_MS, logger)
  lifecycle.onStop('redis of confirmed scripts', () => redis.disconnect())
  return new ConfirmedScripts(redis, replicas)
}

/** A statement that deletes rows ends on the server before this client stops waiting for it. */
const UPKEEP_TIMEOUT_MS = 660_000
