import { lastAttempts } from '../alerts/calling/attempts.ts'
import { openDeliveryQueue } from '../alerts/calling/delivery-queue.ts'
import { sendDepsOf } from '../alerts/calling/send-deps.ts'
import { failingRules } from '../alerts/measuring/rule-states.ts'
import { claimedClickHouse } from '../clickhouse/claimed-clickhouse.ts'
import { connectClickHouse } from '../clickhouse/connect.ts'
import { SchemaWatch } from '../clickhouse/migrate/schema-watch.ts'
import { retainedReads } from '../clickhouse/queries/retention/retained-reads.ts'
import { readLimitSettings } from '../clickhouse/select.ts'
import { watchClickHouse } from '../clickhouse/watch-server.ts'
import { LetterClaims } from '../letters/letter-claims.ts'
import { ReplayJobs } from '../letters/replay-jobs.ts'
import { GIB, MIB } from '../schemas/units.ts'
import { FairShares } from '../shared/concurrency/fair-shares.ts'
import { FairSlots } from '../shared/concurrency/fair-slots.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { DirectoryMemory } from '../shared/directory/directory-memory.ts'
import { unlessEmptied } from '../shared/directory/emptied.ts'
import { readInstallation } from '../shared/directory/installation-record.ts'
import { readReceiptSecrets } from '../shared/directory/receipt-secret.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { claimedBucket } from '../shared/installation/claimed-store.ts'
import { InstallationWatch } from '../shared/installation/installation-watch.ts'
import { createCallObserver } from '../shared/object-store/call-metrics.ts'
import { connectObjectStore } from '../shared/object-store/object-store.ts'
import { KeyCounts, readKeyUsage, readKeyUse } from '../shared/queue/key-usage.ts'
import { Queues } from '../shared/queue/queues.ts'
import { connectionFault, connectProducer } from '../shared/queue/redis.ts'
import { removeUploads } from '../shared/queue/remove-uploads.ts'
import { countAccepted } from '../shared/queue/request-counts.ts'
import { readOldestWatermarks, readWatermarks } from '../shared/queue/watermark.ts'
import { errorMessage } from '../shared/runtime/errors.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import type { Health } from '../shared/runtime/process/health.ts'
import { firstKeptDay, keptDays } from '../shared/runtime/retention.ts'
import { createAuthenticate } from './auth/authenticate.ts'
import { metadataUrl } from './auth/protected-resource.ts'
import { createTokenVerifier } from './auth/verify-token.ts'
import { type ApiConfig, tokenIssuers } from './config.ts'
import type { ApiDeps } from './deps.ts'
import { ReadThreads } from './grafana/threads/read-threads.ts'
import { createReadiness } from './readiness.ts'
import { cachedRetention } from './retention.ts'
import { connectTraceQueues } from './traces/completeness/trace-queues.ts'

/** The dependencies of the routes, connected. */
interface ConnectedApi {
  readonly deps: ApiDeps
  readonly isReady: () => Promise<Health>
  /** Watches whether the stores of the API belong to one installation. The process is not ready while they do not. */
  readonly watchInstallation: () => InstallationWatch
}

/** How long one command on Redis may take. */
const REDIS_TIMEOUT_MS = 1_000
/**
 * Everything that callers share. One workspace alone can hold half of each, because an owner may hold at most as much as is
 * still free. Together with the limits of a read they bound the memory of the process (docs/api/backpressure.md#read-shares).
 */
const SHARES = {
  /** Requests in progress, with up to six queries each, and requests that wait for one of them to finish. */
  requests: { slots: 32, waiting: 512 },
  /** Lists of findings, which read a row for each finding and day, and use all cores of ClickHouse for it. */
  findingLists: { slots: 8, waiting: 64 },
  /** Searches of logs, which use all cores of ClickHouse, with up to 4 MiB of records each. */
  logSearches: { slots: 8, waiting: 64 },
  /** Lists and timelines of sessions. A list reads every request of its window of time, with all cores. */
  sessionReads: { slots: 8, waiting: 64 },
  /** Reads of metrics, which may sort millions of points in ClickHouse. Each query of PromQL has the memory of a thread. */
  metricReads: { slots: 2, waiting: 64 },
  /** Rates of services, which read a row for each operation and minute, with all cores. */
  serviceReads: { slots: 4, waiting: 64 },
  /** Histories of the pipeline, which read a row for each job, surface and dead letter of their time. */
  pipelineReads: { slots: 4, waiting: 64 },
  /** Searches of traces, which read 8,192 rows for each trace that they look at, with all cores. */
  traceSearches: { slots: 8, waiting: 64 },
  /** Large traces in memory. The largest takes 100 MB. Two would not fit into 256 MB. */
  largeTraces: { slots: 1, waiting: 64 },
  /** Pages of manifests in memory, with up to 8 MiB of files each. */
  manifestPages: { slots: 4, waiting: 64 },
  /** Steps of replays and purges of dead letters: 24 MiB of letters and their payload, or an object of up to 64 MiB. */
  letterSteps: { slots: 2, waiting: 64 },
  /** Bytes of large responses that their clients have not read yet. */
  replyBytes: 64 * MIB,
  /** Open replay chunks, besides the first one of each stream: 0.5 MB each. Most sessions have one or two at a time. */
  replayChunks: 32,
} as const

/** Limits of one query. A list reads a row per finding and day, so these numbers only stop what would never end. */
const READ_LIMITS = {
  memoryBytes: 512 * MIB,
  readRows: 1_000_000_000,
  readBytes: 16 * GIB,
  resultBytes: 16 * MIB,
} as const

/** Connects what the routes of the API need. `lifecycle` closes it again, after the server that mounts the routes. */
export function connectApi(
  config: ApiConfig,
  logger: Logger,
  metrics: Metrics,
  lifecycle: Lifecycle,
  now: () => number = Date.now,
): ConnectedApi {
  const redis = connectProducer(config.DIRECTORY_REDIS_URL, REDIS_TIMEOUT_MS, logger)
  lifecycle.onStop('redis', () => redis.disconnect())
  const deliveryQueue = openDeliveryQueue(redis)
  lifecycle.onStop('queue of deliveries', () => deliveryQueue.close())
  const queues = new Queues(config.REDIS_URL, to => connectProducer(to, REDIS_TIMEOUT_MS, logger))
  lifecycle.onStop('redis of the queues', () => queues.close())
  const clickhouse = connectClickHouse(config, {
    requestTimeoutMs: config.API_QUERY_TIMEOUT_MS + 1_000,
    // The queries of the streams come on top of those of the requests.
    maxConnections: 64,
    settings: readLimitSettings({ ...READ_LIMITS, timeoutMs: config.API_QUERY_TIMEOUT_MS }),
  })
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  watchClickHouse(metrics, clickhouse)
  const schema = new SchemaWatch({ clickhouse, database: config.CLICKHOUSE_DATABASE, logger })
  lifecycle.onStop('schema', () => schema.stop())

  const objects = connectObjectStore(config, config.API_QUERY_TIMEOUT_MS, createCallObserver(metrics))
  lifecycle.onStop('object store', () => objects.close())

  const directoryMemory = new DirectoryMemory({ redis, logger })
  lifecycle.onStop('memory of the directory', () => directoryMemory.stop())
  const directory = createDirectory(redis)
  const { workspaceBySlug, member, workspaceKeyByDigest, effectiveSurfaceKey } = directory
  const lookups = { workspaceBySlug, member, workspaceKeyByDigest, effectiveSurfaceKey }
  const credentials = unlessEmptied(lookups, redis)
  const counts = new KeyCounts(queues.common, logger, now)
  lifecycle.onStop('counts of keys', () => counts.stop())
  const authenticate = createAuthenticate({
    verifyToken: createTokenVerifier(tokenIssuers(config, logger, now), now),
    directory: credentials,
    counts,
    logger,
    now,
    metadataUrl: (presented, path) => metadataUrl(config, presented, path),
  })
  const threads = new ReadThreads(SHARES.metricReads.slots + SHARES.largeTraces.slots, logger)
  lifecycle.onStop('threads', () => threads.close())
  const replayJobs = new ReplayJobs(queues)
  const retentionOf = cachedRetention(directory, now)
  let installation: InstallationWatch | undefined
  return {
    deps: {
      acceptedRequests: (asked, hours) => countAccepted(queues, asked, hours),
      authenticate,
      clickhouse: retainedReads(clickhouse, {
        retentionOf,
        installationDays: config.RETENTION_DAYS,
        now,
      }),
      directory: { ...directory, ...credentials },
      directoryMemory,
      keyPepper: config.KEY_PEPPER,
      deliveries: sendDepsOf(config),
      deliveryQueue,
      lastAttempts: (workspaceId, limit) => lastAttempts(redis, workspaceId, limit),
      failingRules: (workspaceId, rules) => failingRules(redis, workspaceId, rules),
      keyUse: (workspaceId, keyIds) => readKeyUse(queues.common, workspaceId, keyIds, now()),
      keyUsage: (workspaceId, day) => readKeyUsage(queues.common, workspaceId, day),
      firstKeptDay: async (workspaceId, kind) =>
        firstKeptDay(keptDays(await retentionOf(workspaceId), kind, config.RETENTION_DAYS), now()),
      findingLists: new FairSlots(SHARES.findingLists),
      largeTraces: new FairSlots(SHARES.largeTraces),
      letterClaims: new LetterClaims(queues, config.RETENTION_DAYS),
      letterObjects: objects,
      letterSteps: new FairSlots(SHARES.letterSteps),
      logger,
      logSearches: new FairSlots(SHARES.logSearches),
      logSearchRows: config.LOG_SEARCH_ROWS,
      metricReads: new FairSlots(SHARES.metricReads),
      now,
      manifestPages: new FairSlots(SHARES.manifestPages),
      objects,
      oldestWatermarks: () => readOldestWatermarks(queues),
      pipelineReads: new FairSlots(SHARES.pipelineReads),
      serviceReads: new FairSlots(SHARES.serviceReads),
      queryTimeoutMs: config.API_QUERY_TIMEOUT_MS,
      removeUploads: release => removeUploads(queues.common, release),
      receiptSecrets: () => readReceiptSecrets(redis),
      queueLosses: async () => (await readInstallation(redis))?.losses ?? [],
      releases: createReleaseStore(redis),
      replayJobs,
      replayShares: {
        streams: new FairShares(config.REPLAY_STREAMS),
        chunks: new FairShares(SHARES.replayChunks),
      },
      retentionDays: config.RETENTION_DAYS,
      sessionReads: new FairSlots(SHARES.sessionReads),
      shares: { requests: new FairSlots(SHARES.requests), replyBytes: new FairShares(SHARES.replyBytes) },
      threads,
      traceQueues: connectTraceQueues(queues),
      traceSearches: new FairSlots(SHARES.traceSearches),
      watermarks: surfaces => readWatermarks(queues, surfaces),
    },
    watchInstallation() {
      const stores = [claimedClickHouse(clickhouse), claimedBucket(objects)]
      installation = new InstallationWatch({ directory: redis, queues, stores, mayClaim: false, logger })
      lifecycle.onStop('installation', () => installation?.stop())
      return installation
    },
    isReady: createReadiness({
      directory: () => connectionFault(redis, 'directory'),
      async clickhouse() {
        const ping = await clickhouse.ping({ select: true, abort_signal: AbortSignal.timeout(800) })
        return ping.success
          ? undefined
          : `clickhouse does not respond, or refuses the user: ${errorMessage(ping.error)}`
      },
      schema: () => schema.fault,
      installation: () => installation?.fault,
    }),
  }
}
