import type { Redis } from 'ioredis'
import { ADMITTED_QUEUES, INGEST_QUEUES, type IngestQueue, type QueueName } from '../schemas/queues/names.ts'
import { FairShares } from '../shared/concurrency/fair-shares.ts'
import { adoptOnConnect, whenAdopted } from '../shared/directory/adopt.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { DirectoryMemory } from '../shared/directory/directory-memory.ts'
import { unlessEmptied } from '../shared/directory/emptied.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { BufferPool } from '../shared/memory/buffer-pool.ts'
import { connectObjectStore } from '../shared/object-store/connect.ts'
import { type StoreWatches, watchStores } from '../shared/queue/durability-watch.ts'
import { onOneServer, type QueueConnections } from '../shared/queue/partitions/connections.ts'
import { FollowedPartitions } from '../shared/queue/partitions/partition-feed.ts'
import { UsedPartitions } from '../shared/queue/partitions/used-partitions.ts'
import { LANES, type Lane } from '../shared/queue/queue.ts'
import { connectProducer } from '../shared/queue/redis.ts'
import { watchQueueAges } from '../shared/queue/watch/queue-ages.ts'
import { createQueueLoads, type QueueLoads } from '../shared/queue/watch/queue-loads.ts'
import { watchCaches } from '../shared/runtime/cache-counts.ts'
import { replicasToConfirm } from '../shared/runtime/config.ts'
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
import { followCredentialChanges } from './auth/key-cache.ts'
import { LimitsOfKeys } from './auth/key-limits.ts'
import { LookupBudget } from './auth/lookup-budget.ts'
import { createReleaseLookup } from './auth/release-lookup.ts'
import { CommitFailures } from './commit/commit-failures.ts'
import { createConditionalCommit } from './commit/conditional-commit.ts'
import { type ConditionalSink, createConditionalSink } from './commit/conditional-sink.ts'
import { ExpressTraffic } from './commit/express-traffic.ts'
import { createFrameSink, type FrameSink } from './commit/frame-sink.ts'
import { GroupCommit } from './commit/group-commit.ts'
import { LargeCommit } from './commit/large-commit.ts'
import { LaneTargets } from './commit/partitions/lane-targets.ts'
import type { PartitionTargets } from './commit/partitions/partition-writer.ts'
import { createReceiptIssuer, followReceiptSecret, type ReceiptIssuer } from './commit/receipt-issuer.ts'
import type { IngestConfig } from './config.ts'
import type { BuildDeps, IngestDeps } from './deps.ts'
import { createIngestMetrics, type IngestMetrics } from './metrics.ts'
import { VerdictWaits } from './releases/verdict-waits.ts'

/** The edge, connected: the dependencies of its routes, and the hooks of its process. */
export interface Edge {
  readonly deps: IngestDeps
  /** Returns true, or the reason why the edge cannot accept requests yet. */
  readonly isReady: () => true | string
  /** Ends the waits for workers when the process is about to stop. Their clients are asked to retry. */
  readonly endWaits: () => void
  /** Reads the loads of all queues for autoscalers. */
  readonly readQueues: () => Promise<QueueLoads>
}

/** Collaborators that every part of the wiring uses. */
interface Wiring {
  readonly config: IngestConfig
  readonly logger: Logger
  readonly metrics: IngestMetrics
  readonly lifecycle: Lifecycle
  /** Opens a connection that is closed when the process stops. Each kind of write has its own, so that none waits for another. */
  readonly connect: (url: string) => Redis
}

/** Collaborators that the sinks of all queues share. */
interface SinkParts {
  readonly admission: Admission
  /** The clock of the Redis of the queues. */
  readonly clock: RedisClock
  /** Returns the partitions that are written to on a connection. */
  readonly targetsOf: (redis: Redis) => PartitionTargets
  readonly failures: CommitFailures
  readonly receipts: ReceiptIssuer
  readonly durability: StoreWatches
  /** The memory of the payloads of all commits. */
  readonly memory: BufferPool
}

const SHARED_REDIS =
  'CONTROL_REDIS_URL is REDIS_URL: the directory and the queues share their memory; give the directory a Redis of its own'

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
  const opened: { readonly url: string; readonly redis: Redis }[] = []
  const connect = (url: string): Redis => {
    const redis = connectProducer(url, config.COMMIT_TIMEOUT_MS, logger)
    opened.push({ url, redis })
    lifecycle.onStop('redis', () => redis.disconnect())
    return redis
  }
  const wiring: Wiring = { config, logger, metrics: createIngestMetrics(metrics), lifecycle, connect }
  const directoryUrl = config.CONTROL_REDIS_URL
  const directoryRedis = connect(directoryUrl)
  if (directoryUrl === config.REDIS_URL) logger.warn(SHARED_REDIS)
  const adoption = adoptOnConnect(directoryRedis, logger)
  const { effectiveSurfaceKey } = createDirectory(directoryRedis)
  const clock = new RedisClock()
  const reconnect = (at: string) =>
    void opened.filter(({ url }) => url === at).map(({ redis }) => redis.disconnect(true))
  const stores = { queues: connect(config.REDIS_URL), directory: directoryRedis }
  const queues = onOneServer(stores.queues)
  const durability = watchStores({ ...stores, reconnect, logger, metrics, lifecycle }, config)
  const countFailure = (queue: QueueName) => {
    wiring.metrics.countCommitFailure(queue)
    durability.queues.recheck()
  }
  const parts: SinkParts = {
    durability,
    admission: connectAdmission(wiring, clock),
    clock,
    targetsOf: usePartitions(wiring, queues, clock),
    failures: new CommitFailures({ logger, count: countFailure }),
    receipts: createReceiptIssuer(followReceiptSecret({ ...stores, logger, adopted: adoption.done })),
    memory: new BufferPool(IDLE_PAYLOAD_BYTES),
  }
  const tallies = new RequestTallies(stores.queues, logger, now)
  lifecycle.onStop('counts of requests', () => tallies.stop())
  const { sinks, connections } = connectSinks(wiring, parts)
  watchRedis(metrics, stores)
  watchQueueAges(metrics, queues)
  const usage = new DailyUsage({ redis: directoryRedis, logger })
  lifecycle.onStop('daily counts of keys', () => usage.stop())
  const keys = {
    directory: whenAdopted(unlessEmptied({ effectiveSurfaceKey }, directoryRedis), adoption),
    logger,
    limits: new LimitsOfKeys(usage, Date.now, wiring.metrics.countKeyRefusal),
    lookupBudget: new LookupBudget(Date.now, () => wiring.metrics.countKeyRefusal('unseenKeys')),
  }
  const builds = connectBuilds(wiring, parts, keys, directoryRedis)
  const publicKeys = createPublicKeyAuthenticator(keys)
  const caches = { public_keys: publicKeys.cache, secret_keys: builds.deps.secretKeys.cache }
  watchCaches(metrics, caches)
  followCredentialChanges({ subscriber: connect(directoryUrl), logger }, Object.values(caches))

  const required = [directoryRedis, ...connections, ...builds.connections]
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
      if (!required.every(redis => redis.status === 'ready')) return 'redis is not connected'
      if (!clock.isKnown) return 'the clock of redis is not known yet'
      if (durability.fault !== undefined) return durability.fault
      return parts.receipts.isReady || 'the receipt secret is not read yet, or the directory is empty'
    },
    endWaits: () => builds.deps.verdicts.stop(),
    readQueues: createQueueLoads(queues),
  }
}

/** Registers the partitions that this process writes to. Returns a function that gives them to a connection. */
function usePartitions(
  { config, logger, lifecycle }: Wiring,
  queues: QueueConnections,
  clock: RedisClock,
): (redis: Redis) => PartitionTargets {
  const followers: LaneTargets[] = []
  const used = new UsedPartitions({
    queues,
    logger,
    count: config.QUEUE_PARTITIONS,
    onChange: partitions => {
      for (const targets of followers) targets.follow(partitions)
    },
  })
  lifecycle.onStop('partitions', () => used.stop())
  return redis => {
    const targets = new LaneTargets({ redis, clock, mayUse: partition => used.mayUse(partition) }, queues.first)
    followers.push(targets)
    return targets
  }
}

function connectAdmission({ config, logger, metrics, lifecycle, connect }: Wiring, clock: RedisClock): Admission {
  const connections = onOneServer(connect(config.REDIS_URL))
  const partitions = new FollowedPartitions({ queues: connections, logger })
  lifecycle.onStop('partitions of others', () => partitions.stop())
  const admission = new Admission(
    { connections, partitions, queues: ADMITTED_QUEUES, logger, clock, onRefused: metrics.countRefusal },
    {
      limits: {
        maxCost: config.QUEUE_MAX_COST,
        maxPayloads: config.QUEUE_MAX_PAYLOADS,
        maxBytes: config.QUEUE_MAX_BYTES,
      },
      maxMemoryShare: config.REDIS_MAX_MEMORY_SHARE,
      pollMs: 250,
    },
  )
  lifecycle.onStop('admission', () => admission.stop())
  metrics.watchBacklog(admission, ADMITTED_QUEUES)
  return admission
}

function sinkDeps({ failures, durability }: SinkParts) {
  return { failures, durability: durability.queues }
}

/** The sinks of the queues that are written by group commits. */
interface ConnectedSinks {
  readonly sinks: Readonly<Record<IngestQueue, FrameSink>>
  readonly connections: readonly Redis[]
}

/** Large frames that this process writes at once. One surface alone may write half of them. */
const MAX_LARGE_FRAMES = 8

/**
 * Memory of payloads that is kept between commits, for all lanes: four buffers of COMMIT_MAX_BYTES. A busy lane takes one when a
 * request arrives and gives it back when Redis has confirmed it, so few are idle at once.
 */
const IDLE_PAYLOAD_BYTES = 16 * 1024 * 1024

function connectSinks(wiring: Wiring, parts: SinkParts): ConnectedSinks {
  const { config, logger, metrics, lifecycle, connect } = wiring
  const { admission, receipts, memory } = parts
  const connections: Redis[] = []
  const connectOne = (): Redis => {
    const redis = connect(config.REDIS_URL)
    connections.push(redis)
    parts.durability.queues.follow(redis)
    return redis
  }
  const large = {
    targets: parts.targetsOf(connectOne()),
    slots: new FairShares(MAX_LARGE_FRAMES),
  }
  const traffic = new ExpressTraffic()
  const sinks = INGEST_QUEUES.map(queue => {
    const shares = admission.sharesOf(queue)
    const priorityOf = (held: number) => shares.bulkPriority(held)
    const onCommit = (frames: number, bytes: number, durationMs: number) =>
      metrics.observeCommit(queue, frames, bytes, durationMs)
    const common = { queue, receipts, traffic, memory, logger, minReplicas: replicasToConfirm(config) }
    const commitOf = (lane: Lane): GroupCommit => {
      const commit = new GroupCommit(
        { ...common, targets: parts.targetsOf(connectOne()), lane },
        {
          maxCommitBytes: config.COMMIT_MAX_BYTES,
          maxCommitFrames: config.COMMIT_MAX_FRAMES,
          timeoutMs: config.COMMIT_TIMEOUT_MS,
          ...(lane === 'bulk' && { priorityOf }),
          onCommit,
        },
      )
      lifecycle.onStop(`${lane} commits of ${queue}`, () => commit.drain())
      return commit
    }
    const commits = Object.fromEntries(LANES.map(lane => [lane, commitOf(lane)])) as Record<Lane, GroupCommit>
    const largeCommit = new LargeCommit(
      { ...common, ...large },
      { timeoutMs: config.COMMIT_TIMEOUT_MS, priorityOf, onCommit },
    )
    lifecycle.onStop(`large commits of ${queue}`, () => largeCommit.drain())
    return [queue, createFrameSink({ queue, commits, largeCommit, shares, ...sinkDeps(parts) })] as const
  })
  return { sinks: Object.fromEntries(sinks) as Record<IngestQueue, FrameSink>, connections }
}

/** Connects what only the routes with a secret key use. */
function connectBuilds(
  wiring: Wiring,
  parts: SinkParts,
  keys: KeyAuthenticatorDeps,
  directoryRedis: Redis,
): { deps: BuildDeps; connections: readonly Redis[] } {
  const { config, metrics, lifecycle } = wiring
  const connect = () => wiring.connect(config.REDIS_URL)
  const [partsRedis, completionsRedis, uploads] = [connect(), connect(), connect()]
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
      parts: connectConditionalSink(wiring, parts, 'source-maps', partsRedis),
      completions: connectConditionalSink(wiring, parts, 'completions', completionsRedis),
      signing: { releases, objects, uploads },
      directoryMemory: { refuse: () => parts.durability.directory.refuse() ?? directoryMemory.refuse() },
      refuseForMemory: () => parts.durability.queues.refuse() ?? parts.admission.refuseForMemory(),
      verdicts: connectVerdicts(wiring, uploads),
      onPart: metrics.countPart,
      onCompletion: metrics.countCompletion,
    },
    connections: [partsRedis, completionsRedis, uploads],
  }
}

function connectConditionalSink(
  { config, logger, metrics, lifecycle }: Wiring,
  parts: SinkParts,
  queue: 'source-maps' | 'completions',
  redis: Redis,
): ConditionalSink {
  const { admission, clock, receipts, durability, memory } = parts
  durability.queues.follow(redis)
  const shares = admission.sharesOf(queue)
  const commit = createConditionalCommit(
    { redis, queue, receipts, clock, memory, logger, minReplicas: replicasToConfirm(config) },
    {
      timeoutMs: config.COMMIT_TIMEOUT_MS,
      priorityOf: held => shares.bulkPriority(held),
      onCommit: (frames, bytes, durationMs) => metrics.observeCommit(queue, frames, bytes, durationMs),
    },
  )
  lifecycle.onStop(`conditional commits of ${queue}`, () => commit.drain())
  return createConditionalSink(queue, { commit, shares, ...sinkDeps(parts) })
}

function connectVerdicts({ config, logger, metrics, lifecycle, connect }: Wiring, redis: Redis): VerdictWaits {
  const verdicts = new VerdictWaits(
    { redis, subscriber: connect(config.REDIS_URL), logger },
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
