import type { Redis } from 'ioredis'
import { openDeliveryQueue } from '../alerts/calling/delivery-queue.ts'
import { sendDepsOf } from '../alerts/calling/send-deps.ts'
import { readWaitingDeliveries } from '../alerts/calling/waiting-deliveries.ts'
import { Sealing } from '../alerts/delivery/sealing.ts'
import { claimedClickHouse } from '../clickhouse/claimed-clickhouse.ts'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import { connectClickHouse } from '../clickhouse/connect.ts'
import { SchemaWatch } from '../clickhouse/migrate/schema-watch.ts'
import type { PoolName } from '../schemas/queues/names.ts'
import { Backups } from '../shared/backup/backups.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { createDroppingStore } from '../shared/directory/dropping-store.ts'
import { createFindingRulesStore } from '../shared/directory/findings/finding-rules-store.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { createScrubbingStore } from '../shared/directory/scrubbing-store.ts'
import { claimedBucket } from '../shared/installation/claimed-store.ts'
import { InstallationWatch, watchQueueLosses } from '../shared/installation/installation-watch.ts'
import { verifiedQueues } from '../shared/installation/verified-queues.ts'
import { BufferPool } from '../shared/memory/buffer-pool.ts'
import { createCallObserver } from '../shared/object-store/call-metrics.ts'
import { connectObjectStore } from '../shared/object-store/object-store.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import { Queues, type RedisQueue } from '../shared/queue/queues.ts'
import { connectConsumer, connectionFault, connectProducer, usableWhenFull } from '../shared/queue/redis.ts'
import { FollowedQueues } from '../shared/queue/registry/queue-feed.ts'
import { watchStores } from '../shared/queue/store-watches.ts'
import { watchQueueAges } from '../shared/queue/watch/queue-ages.ts'
import { watchQueueStates } from '../shared/queue/watch/queue-states.ts'
import { watchWatermarks } from '../shared/queue/watch/watch-watermarks.ts'
import { watchWorkers } from '../shared/queue/watch/watch-workers.ts'
import { replicasToConfirm } from '../shared/runtime/config.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import { watchCertificates } from '../shared/runtime/redis/watch-certificates.ts'
import type { RegularBackupsDeps } from './back-up-regularly.ts'
import { letterLimits, type WorkersConfig } from './config.ts'
import type { DeliveriesAccess, PoolsDeps, QueueAccess } from './deps.ts'
import { createKnownDropping } from './dropping/known-dropping.ts'
import { createKnownRules } from './exceptions/known-rules.ts'
import type { WorkerMetrics } from './metrics.ts'
import { readInternalBacklogs } from './queue/backlog.ts'
import { RedisLetterQuota } from './queue/letter-quota.ts'
import { createPageClaims } from './queue/page-claims.ts'
import { ConfirmedScripts } from './queue/payloads/confirmed-scripts.ts'
import { FETCHED_BYTES, openPayloadReader } from './queue/payloads/payload-reader.ts'
import { createJobAdder } from './queue/sweep.ts'
import { createKnownScrubbing } from './scrubbing/known-scrubbing.ts'
import { ColumnMemory } from './sink/column-memory.ts'
import { ExpressFirst } from './sink/pace/express-first.ts'
import { StoreAccess, storesOf, usesObjects } from './store-access.ts'
import { createMapAccess } from './symbolication/map-access.ts'
import type { UpkeepDeps } from './upkeep/start-upkeep.ts'
import { createUpkeepMetrics } from './upkeep/upkeep-metrics.ts'

/** Collaborators of the wiring. `metrics` are those of the pools, on top of `processMetrics`. */
interface WorkersWiring {
  /** The pools of the process. */
  readonly queues: readonly PoolName[]
  readonly logger: Logger
  readonly lifecycle: Lifecycle
  readonly metrics: WorkerMetrics
  readonly processMetrics: Metrics
}

/** The dependencies of the pools and of the backups, connected. */
interface ConnectedWorkers {
  readonly deps: PoolsDeps
  readonly queues: Queues
  readonly directoryRedis: Redis
  /** The dependencies of the backups of the directory. */
  readonly directory: RegularBackupsDeps
  readonly upkeep: UpkeepDeps
  /** Whether the stores belong together. Nothing may be written to those of another installation. */
  readonly installation: InstallationWatch
  /** Returns true, or the reason why this process should not be relied on. */
  readonly isReady: () => true | string
}

/** Connects what the pools of a process and its backups need. `lifecycle` closes the connections after the pools that use them. */
export function connectWorkers(
  config: WorkersConfig,
  { queues: names, logger, lifecycle, metrics, processMetrics }: WorkersWiring,
  stopping: AbortSignal,
): ConnectedWorkers {
  const queues = new Queues(config.REDIS_URL, to => connectConsumer(to, logger))
  const redis = queues.common
  lifecycle.onStop('redis', () => queues.close())
  metrics.watchBacklogs(() => readInternalBacklogs(queues))
  watchQueues(config, queues, processMetrics)
  const followed = new FollowedQueues({ queues, logger })
  lifecycle.onStop('list of queues', () => followed.stop())
  const directoryRedis = connectConsumer(config.DIRECTORY_REDIS_URL, logger)
  lifecycle.onStop('directory redis', () => directoryRedis.disconnect())
  const watched: WatchedRedis = { queues, directoryRedis, followed, logger, lifecycle, processMetrics }
  const durability = watchDurability(config, watched)
  const { clickhouse, clickhouseOfUpkeep, schema } = connectTables(config, logger, lifecycle)
  const objects = connectObjectStore(config, undefined, createCallObserver(processMetrics))
  lifecycle.onStop('object store', () => objects.close())
  const releases = createReleaseStore(directoryRedis)
  const installation = watchInstallation(watched, { clickhouse, objects: usesObjects(names) ? objects : undefined })
  const sending = connectDeliveries(config, names, directoryRedis, { logger, lifecycle })
  metrics.watchDeliveries(() => readWaitingDeliveries(directoryRedis))
  const deps: PoolsDeps = {
    ...{ config, redis, queues: verifiedQueues(followed, installation, storesOf) },
    accessTo: createAccess(config, logger, lifecycle),
    columnMemory: new ColumnMemory(),
    expressFirst: new ExpressFirst(),
    ...{ clickhouse, objects, releases },
    maps: createMapAccess({ config, redis, objects, releases, logger, metrics }, lifecycle),
    rules: createKnownRules(createFindingRulesStore(directoryRedis)),
    scrubbing: createKnownScrubbing(createScrubbingStore(directoryRedis)),
    dropping: createKnownDropping(createDroppingStore(directoryRedis)),
    pageClaims: createPageClaims(redis),
    letterQuota: new RedisLetterQuota(redis, letterLimits(config), metrics.observeLetters),
    deliveries: sending && { sending, installation },
    logger,
    metrics,
    stopping,
  }
  const access = new StoreAccess({ clickhouse, objects: usesObjects(names) ? objects : undefined })
  lifecycle.onStop('access to the stores', () => access.stop())
  const disconnected = () => connectionFault(redis, 'queues') ?? connectionFault(directoryRedis, 'directory')
  const watches = [durability, schema, access, installation]
  const isReady = () => disconnected() ?? firstFault(watches)
  const upkeep: UpkeepDeps = {
    ...{ queues, directoryRedis, clickhouse: clickhouseOfUpkeep, objects, logger },
    retentionDays: config.RETENTION_DAYS,
    metrics: createUpkeepMetrics(processMetrics),
    ...connectAlerts(config, directoryRedis, lifecycle),
  }
  const backups = new Backups({ objects, key: config.DIRECTORY_BACKUP_KEY, now: Date.now })
  const directory = { redis: directoryRedis, store: createDirectory(directoryRedis), backups, metrics, logger }
  return { deps, queues, directoryRedis, upkeep, directory, installation, isReady }
}

/** Connects what the upkeep needs for alerts. Links of messages lead to the console at PUBLIC_URL. */
function connectAlerts(
  config: WorkersConfig,
  directoryRedis: Redis,
  lifecycle: Pick<Lifecycle, 'onStop'>,
): Pick<UpkeepDeps, 'deliveryQueue' | 'alerts' | 'resealing'> {
  const queue = openDeliveryQueue(directoryRedis)
  lifecycle.onStop('queue of deliveries', () => queue.close())
  const { DELIVERY_KEY: key, DELIVERY_KEY_PREVIOUS: previousKey, PUBLIC_URL = '' } = config
  if (key === undefined) return { deliveryQueue: queue }
  const resealing = previousKey === undefined ? undefined : new Sealing({ key, previousKey })
  return { deliveryQueue: queue, alerts: { queue, consoleUrl: `${PUBLIC_URL}/console/` }, resealing }
}

/** Connects what sends alerts. Returns undefined without DELIVERY_KEY, because no receiver can be stored. */
function connectDeliveries(
  config: WorkersConfig,
  names: readonly PoolName[],
  redis: Redis,
  { logger, lifecycle }: Pick<WorkersWiring, 'logger' | 'lifecycle'>,
): DeliveriesAccess['sending'] | undefined {
  const sending = sendDepsOf(config)
  if (sending === undefined || !names.includes('deliveries')) return undefined
  const blocking = usableWhenFull(connectConsumer(config.DIRECTORY_REDIS_URL, logger))
  lifecycle.onStop('redis of deliveries', () => blocking.disconnect())
  const { JOB_LOCK_MS: lockMs, JOB_STALLED_CHECK_MS: stalledCheckMs } = config
  return { ...sending, redis, blocking, directory: createDirectory(redis), logger, lockMs, stalledCheckMs }
}

/** Connects ClickHouse, for pools and for the upkeep. Neither inserts into a table while a view is missing that reads it. */
function connectTables(config: WorkersConfig, logger: Logger, lifecycle: Pick<Lifecycle, 'onStop'>) {
  const held = new Map<string, string>()
  const clickhouse = connectClickHouse(config, { held })
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  const clickhouseOfUpkeep = connectClickHouse(config, { requestTimeoutMs: UPKEEP_TIMEOUT_MS, held })
  lifecycle.onStop('clickhouse of the upkeep', () => clickhouseOfUpkeep.close())
  const schema = new SchemaWatch({ clickhouse, database: config.CLICKHOUSE_DATABASE, logger, held })
  lifecycle.onStop('schema', () => schema.stop())
  return { clickhouse, clickhouseOfUpkeep, schema }
}

/** Shows what all queues have to do, who does it, and until when the connections to them can be made. */
function watchQueues(config: WorkersConfig, queues: Queues, metrics: Metrics): void {
  watchQueueAges(metrics, queues)
  watchQueueStates(metrics, queues)
  watchWatermarks(metrics, queues)
  watchWorkers(metrics, queues)
  watchCertificates(metrics, { queues: config.REDIS_URL, directory: config.DIRECTORY_REDIS_URL })
}

/** Connections whose servers are watched. */
interface WatchedRedis extends Pick<WorkersWiring, 'logger' | 'lifecycle' | 'processMetrics'> {
  readonly queues: Queues
  readonly directoryRedis: Redis
  readonly followed: FollowedQueues
}

/** Watches whether the servers of Redis may lose what they confirm, also those of queues that are added later. */
function watchDurability(
  config: WorkersConfig,
  { queues, directoryRedis, followed, logger, lifecycle, processMetrics }: WatchedRedis,
): ReturnType<typeof watchStores> {
  const reconnect = (server: string) =>
    (server === 'directory' ? directoryRedis : queues.connectionTo(server)).disconnect(true)
  const stores = { queues, directory: directoryRedis, reconnect }
  const durability = watchStores({ ...stores, logger, metrics: processMetrics, lifecycle }, config)
  followed.onChange(() => {
    for (const queue of followed.all) durability.queues.of(queue)
  })
  return durability
}

/** Returns the reason of the first watch that has one, or true. */
function firstFault(watches: readonly { readonly fault: string | undefined }[]): true | string {
  return watches.find(({ fault }) => fault !== undefined)?.fault ?? true
}

/** Watches whether the stores belong to one installation. */
function watchInstallation(
  { queues, directoryRedis: directory, followed, logger, lifecycle, processMetrics }: WatchedRedis,
  { clickhouse, objects }: { readonly clickhouse: ClickHouseClient; readonly objects: ObjectStore | undefined },
): InstallationWatch {
  const stores = [claimedClickHouse(clickhouse), ...(objects === undefined ? [] : [claimedBucket(objects)])]
  const installation = new InstallationWatch({ directory, queues, stores, mayClaim: true, logger })
  lifecycle.onStop('installation', () => installation.stop())
  watchQueueLosses(processMetrics, installation)
  followed.onChange(() => void installation.check())
  return installation
}

/** How long Redis may take to run a script that replicas confirm, and they to confirm it. */
const CONFIRMED_SCRIPT_MS = 5_000

/** Returns how pools use each queue. The queues of a server have one reader of payloads. */
export function createAccess(
  config: WorkersConfig,
  logger: Logger,
  lifecycle: Pick<Lifecycle, 'onStop'>,
): PoolsDeps['accessTo'] {
  const memory = new BufferPool(FETCHED_BYTES)
  const replicas = replicasToConfirm(config)
  const ofServers = new Map<string, Pick<QueueAccess, 'payloads' | 'confirmed'>>()
  const known = new Map<RedisQueue, QueueAccess>()
  const closing: (() => void)[] = []
  // Registered before the pools, which are closed first and need these connections until then, also those that they open.
  lifecycle.onStop('payload readers', () => {
    for (const close of closing) close()
  })

  function openServer({ redis, address }: RedisQueue): Pick<QueueAccess, 'payloads' | 'confirmed'> {
    const payloads = openPayloadReader(redis, logger, { maxIdleBytes: FETCHED_BYTES, memory })
    closing.push(() => payloads.close())
    if (replicas === 0) return { payloads }
    const producer = connectProducer(address, CONFIRMED_SCRIPT_MS, logger)
    closing.push(() => producer.disconnect())
    return { payloads, confirmed: new ConfirmedScripts(producer, replicas) }
  }

  return queue => {
    const ofServer = ofServers.get(queue.server) ?? openServer(queue)
    ofServers.set(queue.server, ofServer)
    const access = known.get(queue) ?? { ...ofServer, addJobs: createJobAdder(queue).add }
    known.set(queue, access)
    return access
  }
}

/** A statement that deletes rows ends on the server before this client stops waiting for it. */
const UPKEEP_TIMEOUT_MS = 3_660_000
