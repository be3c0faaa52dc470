import type { Redis } from 'ioredis'
import { readWaitingDeliveries } from '../alerts/calling/waiting-deliveries.ts'
import { ADMITTED_QUEUES, type QueueName } from '../schemas/queues/names.ts'
import { FairShares } from '../shared/concurrency/fair-shares.ts'
import { TokenBucket } from '../shared/concurrency/token-bucket.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { DirectoryMemory } from '../shared/directory/directory-memory.ts'
import { followEmptied, unlessEmptied } from '../shared/directory/emptied.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { InstallationWatch, watchQueueLosses } from '../shared/installation/installation-watch.ts'
import { BufferPool } from '../shared/memory/buffer-pool.ts'
import { connectObjectStore } from '../shared/object-store/object-store.ts'
import { KeyCounts } from '../shared/queue/key-usage.ts'
import { QUEUES_SERVER, Queues } from '../shared/queue/queues.ts'
import { connectionFault, connectProducer } from '../shared/queue/redis.ts'
import { FollowedQueues } from '../shared/queue/registry/queue-feed.ts'
import { UsedQueues } from '../shared/queue/registry/used-queues.ts'
import { watchStores } from '../shared/queue/store-watches.ts'
import { watchQueueAges } from '../shared/queue/watch/queue-ages.ts'
import { createQueueLoads, type QueueLoads } from '../shared/queue/watch/queue-loads.ts'
import { watchQueueStates } from '../shared/queue/watch/queue-states.ts'
import { watchWorkers } from '../shared/queue/watch/watch-workers.ts'
import { watchCaches } from '../shared/runtime/cache-counts.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import { watchRedis } from '../shared/runtime/redis-metrics.ts'
import { Admission } from './admission/admission.ts'
import { RedisClock } from './admission/redis-clock.ts'
import { RequestTallies } from './admission/request-tallies.ts'
import { createSecretKeyAuthenticator } from './auth/authenticate-build.ts'
import { createPublicKeyAuthenticator, type KeyAuthenticatorDeps } from './auth/authenticate-surface.ts'
import { DailyUsage } from './auth/daily-usage.ts'
import { followCredentialChanges, UNSEEN_LOOKUPS } from './auth/key-cache.ts'
import { LimitsOfKeys } from './auth/key-limits.ts'
import { createReleaseLookup } from './auth/release-lookup.ts'
import { CommitFailures } from './commit/commit-failures.ts'
import { ExpressTraffic } from './commit/express-traffic.ts'
import { createReceiptIssuer, followReceiptSecret } from './commit/receipt-issuer.ts'
import type { IngestConfig } from './config.ts'
import {
  connectConditionalSink,
  connectSinks,
  IDLE_PAYLOAD_BYTES,
  MAX_LARGE_FRAMES,
  type SinkParts,
  type Wiring,
} from './connect-sinks.ts'
import type { BuildDeps, IngestDeps } from './deps.ts'
import { createIngestMetrics } from './metrics.ts'
import { VerdictWaits } from './releases/verdict-waits.ts'

/** The edge, connected: the dependencies of its routes, and the hooks of its process. */
interface Edge {
  readonly deps: IngestDeps
  /** Returns true, or the reason why the edge cannot accept requests yet. */
  readonly isReady: () => true | string
  /** Ends the waits for workers when the process is about to stop. Their clients are asked to retry. */
  readonly endWaits: () => void
  /** Reads the loads of all queues for autoscalers. */
  readonly readQueues: () => Promise<QueueLoads>
}

const SHARED_REDIS =
  'DIRECTORY_REDIS_URL is REDIS_URL: the directory and the queues share their memory; give the directory a Redis of its own'

/**
 * Connects the dependencies of the edge's routes. `lifecycle` stops them again, after the server that mounts the routes. `now`
 * is the time at which requests arrive.
 */
export function connectEdge(
  config: IngestConfig,
  logger: Logger,
  metrics: Metrics,
  lifecycle: Lifecycle,
  now: () => number = Date.now,
): Edge {
  const opened: { readonly server: string; readonly redis: Redis }[] = []
  const keep = (redis: Redis, server: string): Redis => {
    opened.push({ server, redis })
    lifecycle.onStop('redis', () => redis.disconnect())
    return redis
  }
  const connect: Wiring['connect'] = (to, server) => keep(connectProducer(to, config.COMMIT_TIMEOUT_MS, logger), server)
  const queues = new Queues(config.REDIS_URL, connect)
  const wiring: Wiring = {
    ...{ config, logger, lifecycle, queues, connect },
    metrics: createIngestMetrics(metrics),
  }
  const directoryUrl = config.DIRECTORY_REDIS_URL
  const isShared = directoryUrl === config.REDIS_URL
  const directoryRedis = connect(directoryUrl, isShared ? QUEUES_SERVER : DIRECTORY)
  if (isShared) logger.warn(SHARED_REDIS)
  const { effectiveSurfaceKey } = createDirectory(directoryRedis)
  const clocks = new Map<string, RedisClock>()
  const clockOf = (server: string): RedisClock => {
    const clock = clocks.get(server) ?? new RedisClock()
    clocks.set(server, clock)
    return clock
  }
  const reconnect = (to: string) =>
    void opened.filter(({ server }) => server === to).map(({ redis }) => redis.disconnect(true))
  // On connections of its own, so that polls wait for nothing.
  const polled = new Queues(config.REDIS_URL, connect)
  const installation = new InstallationWatch({
    ...{ directory: directoryRedis, queues: polled, stores: [], mayClaim: true, logger },
  })
  lifecycle.onStop('installation', () => installation.stop())
  watchQueueLosses(metrics, installation)
  const alsoRefuse = () => installation.refuse()
  const watched = { queues, directory: directoryRedis, reconnect, alsoRefuse }
  const durability = watchStores({ ...watched, logger, metrics, lifecycle }, config)
  const countFailure = (queue: QueueName) => {
    wiring.metrics.countCommitFailure(queue)
    durability.queues.recheck()
  }
  const followed = new FollowedQueues({ queues: polled, logger })
  lifecycle.onStop('list of queues', () => followed.stop())
  followed.onChange(() => void installation.check())
  const used = new UsedQueues({ queues, followed, logger, config })
  lifecycle.onStop('registered queues', () => used.stop())
  const parts: SinkParts = {
    durability,
    admission: connectAdmission(wiring, polled.common, followed, clockOf),
    clockOf,
    used,
    failures: new CommitFailures({ logger, count: countFailure }),
    receipts: createReceiptIssuer(
      followReceiptSecret({ directory: directoryRedis, onChecked: follow => installation.onChecked(follow), logger }),
    ),
    memory: new BufferPool(IDLE_PAYLOAD_BYTES),
    traffic: new ExpressTraffic(),
    largeSlots: new FairShares(MAX_LARGE_FRAMES),
  }
  const tallies = new RequestTallies(queues, logger, now)
  lifecycle.onStop('counts of requests', () => tallies.stop())
  const { sinks, lanes } = connectSinks(wiring, parts)
  watchRedis(metrics, { directory: directoryRedis, queues: queues.firstOf('traces').redis })
  watchQueueAges(metrics, queues)
  watchQueueStates(metrics, queues)
  watchWorkers(metrics, queues)
  const followedDirectory = followEmptied(directoryRedis, metrics)
  lifecycle.onStop('looks at the directory', () => followedDirectory.stop())
  const usage = new DailyUsage({ redis: directoryRedis, logger })
  lifecycle.onStop('daily counts of keys', () => usage.stop())
  const counts = new KeyCounts(queues.common, logger, now)
  lifecycle.onStop('counts of keys', () => counts.stop())
  const keys = {
    directory: unlessEmptied({ effectiveSurfaceKey }, directoryRedis),
    logger,
    counts,
    limits: new LimitsOfKeys(usage, Date.now, wiring.metrics.countKeyRefusal),
    unseenLookups: new TokenBucket(UNSEEN_LOOKUPS),
    onOverBudget: () => wiring.metrics.countKeyRefusal('unseenKeys'),
  }
  const builds = connectBuilds(wiring, parts, keys, directoryRedis)
  const publicKeys = createPublicKeyAuthenticator(keys)
  const caches = { public_keys: publicKeys.cache, secret_keys: builds.deps.secretKeys.cache }
  watchCaches(metrics, caches)
  followCredentialChanges(
    { subscriber: connect(directoryUrl, isShared ? QUEUES_SERVER : DIRECTORY), logger },
    Object.values(caches),
  )

  // In a cluster, the masters that are connected take the commits of the others.
  const required = [directoryRedis, ...(queues.areOnOneServer ? builds.connections : [])]
  const areConnected = () => required.every(redis => redis.status === 'ready') && lanes.every(lane => lane.isConnected)
  const faultOf = ({ server, redis }: (typeof opened)[number]) =>
    connectionFault(redis, server === DIRECTORY ? 'directory' : 'queues')
  return {
    deps: {
      ...builds.deps,
      publicKeys,
      sinks,
      counterOf: queue => tallies.of(queue),
      identityProviders: config.IDENTITY_PROVIDERS,
      onReplayIgnored: wiring.metrics.countIgnoredReplay,
      logger,
      now,
    },
    isReady: () => {
      if (!areConnected()) return opened.map(faultOf).find(Boolean) ?? 'redis is not connected'
      if (![...clocks.values()].some(clock => clock.isKnown)) return 'the clock of redis is not known yet'
      const fault = durability.fault ?? followedDirectory.fault ?? installation.fault
      if (fault !== undefined) return fault
      return parts.receipts.isReady || 'the receipt secret is not read yet, or the directory is empty'
    },
    endWaits: () => builds.deps.verdicts.stop(),
    readQueues: createQueueLoads(queues, () => readWaitingDeliveries(directoryRedis)),
  }
}

/** Its name in the list of connections. */
const DIRECTORY = 'directory'

function connectAdmission(
  { config, logger, metrics, lifecycle }: Wiring,
  redis: Redis,
  followed: FollowedQueues,
  clockOf: (server: string) => RedisClock,
): Admission {
  const admission = new Admission(
    { redis, followed, queues: ADMITTED_QUEUES, logger, clockOf, onRefused: metrics.countRefusal },
    {
      maxCost: config.QUEUE_MAX_COST,
      maxMemoryShare: config.REDIS_MAX_MEMORY_SHARE,
      pollMs: 250,
    },
  )
  lifecycle.onStop('admission', () => admission.stop())
  metrics.watchBacklog(admission, ADMITTED_QUEUES)
  return admission
}

/** Connects what only the routes with a secret key use. */
function connectBuilds(
  wiring: Wiring,
  parts: SinkParts,
  keys: KeyAuthenticatorDeps,
  directoryRedis: Redis,
): { deps: BuildDeps; connections: readonly Redis[] } {
  const { config, metrics, lifecycle } = wiring
  const uploads = wiring.connect(config.REDIS_URL, QUEUES_SERVER)
  const parted = connectConditionalSink(wiring, parts, 'source-maps')
  const completions = connectConditionalSink(wiring, parts, 'completions')
  const releases = createReleaseStore(directoryRedis)
  const directoryMemory = new DirectoryMemory({ redis: directoryRedis, logger: wiring.logger })
  lifecycle.onStop('memory of the directory', () => directoryMemory.stop())

  const objects = connectObjectStore(
    { ...config, S3_ENDPOINT: config.S3_PUBLIC_ENDPOINT ?? config.S3_ENDPOINT },
    // This client only signs addresses. Only fetching credentials from elsewhere may take time.
    config.COMMIT_TIMEOUT_MS,
  )
  lifecycle.onStop('object store', () => objects.close())

  return {
    deps: {
      secretKeys: createSecretKeyAuthenticator(keys),
      releases,
      releaseLookup: createReleaseLookup(releases),
      parts: parted.sink,
      completions: completions.sink,
      signing: { releases, objects, uploads },
      directoryMemory: { refuse: () => parts.durability.directory.refuse() ?? directoryMemory.refuse() },
      refuseForMemory: () => parts.durability.queues.refuse() ?? parts.admission.refuseForMemory(),
      verdicts: connectVerdicts(wiring, uploads),
      onPart: metrics.countPart,
      onCompletion: metrics.countCompletion,
    },
    connections: [parted.redis, completions.redis, uploads],
  }
}

function connectVerdicts({ config, logger, metrics, lifecycle, queues, connect }: Wiring, redis: Redis): VerdictWaits {
  const { address, server } = queues.firstOf('completions')
  const verdicts = new VerdictWaits(
    { redis, subscriber: connect(address, server), logger },
    {
      maxWaiting: config.VERDICT_MAX_WAITING,
      deadlineMs: config.VERDICT_TIMEOUT_MS,
      pollMs: 1_000,
      onSettled: metrics.observeVerdict,
    },
  )
  lifecycle.onStop('waits for verdicts', () => verdicts.stop())
  metrics.watchVerdicts(verdicts)
  return verdicts
}
