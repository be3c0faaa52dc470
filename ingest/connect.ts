import type { Redis } from 'ioredis'
import { SOURCE_MAP_MAX_BYTES } from '../schemas/http/source-maps/schemas.ts'
import { ADMITTED_QUEUES, INGEST_QUEUES, type IngestQueue } from '../schemas/queues/names.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { connectProducer } from '../shared/queue/redis.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import { createAdmission } from './admission/admission.ts'
import { createPublicKeyAuthenticator } from './auth/authenticate-surface.ts'
import { followCredentialChanges } from './auth/credential-changes.ts'
import { commitTimeoutMs, createGroupCommit, type GroupCommit } from './commit/group-commit.ts'
import { createReceiptIssuer, followReceiptSecret } from './commit/receipt-issuer.ts'
import type { IngestConfig } from './config.ts'
import { connectBuilds } from './connect-builds.ts'
import { createIngestMetrics } from './metrics.ts'
import type { IngestDeps } from './routes.ts'

export interface Edge {
  readonly deps: IngestDeps
  readonly isReady: () => true | string
  /** The process is about to stop: clients that wait for a worker are told to come again. */
  readonly endWaits: () => void
}

/** Connects what the routes of the edge need; `lifecycle` takes it down again, after the server that mounts them. */
export function connectEdge(config: IngestConfig, logger: Logger, metrics: Metrics, lifecycle: Lifecycle): Edge {
  const ingestMetrics = createIngestMetrics(metrics)
  const connect = (url: string, timeoutMs = config.COMMIT_TIMEOUT_MS): Redis => {
    const redis = connectProducer(url, timeoutMs, logger)
    lifecycle.onStop('redis', () => redis.disconnect())
    return redis
  }
  const directoryUrl = config.CONTROL_REDIS_URL ?? config.REDIS_URL
  const directoryRedis = connect(directoryUrl)
  // Polled apart from the commits, so that neither waits for the other.
  const flowRedis = connect(config.REDIS_URL)

  const admission = createAdmission(
    { redis: flowRedis, queues: ADMITTED_QUEUES, logger },
    {
      maxPayloads: config.QUEUE_MAX_PAYLOADS,
      maxBytes: config.QUEUE_MAX_BYTES,
      maxMemoryShare: config.REDIS_MAX_MEMORY_SHARE,
      pollMs: 250,
    },
  )
  lifecycle.onStop('admission', () => admission.stop())
  ingestMetrics.watchBacklog(admission, ADMITTED_QUEUES)

  const receipts = createReceiptIssuer(followReceiptSecret(directoryRedis, logger))
  const largestMs = commitTimeoutMs(config.COMMIT_TIMEOUT_MS, SOURCE_MAP_MAX_BYTES)
  const queueRedis = INGEST_QUEUES.map(queue =>
    queue === 'source-maps' ? connect(config.REDIS_URL, largestMs) : connect(config.REDIS_URL),
  )
  const commits = Object.fromEntries(
    INGEST_QUEUES.map((queue, i) => {
      const commit = createGroupCommit(
        { redis: queueRedis[i] as Redis, queue, receipts, logger },
        {
          maxCommitBytes: config.COMMIT_MAX_BYTES,
          maxCommitFrames: config.COMMIT_MAX_FRAMES,
          timeoutMs: config.COMMIT_TIMEOUT_MS,
          onCommit: (frames, bytes, durationMs) => ingestMetrics.observeCommit(queue, frames, bytes, durationMs),
        },
      )
      lifecycle.onStop(`commits of ${queue}`, () => commit.drain())
      return [queue, commit]
    }),
  ) as Record<IngestQueue, GroupCommit>

  const directory = createDirectory(directoryRedis)
  const builds = connectBuilds(config, {
    directory,
    releases: createReleaseStore(directoryRedis),
    receipts,
    connect: () => connect(config.REDIS_URL),
    metrics: ingestMetrics,
    lifecycle,
    logger,
  })
  const authenticator = createPublicKeyAuthenticator({ directory, logger })
  const keyCaches = [authenticator.cache, builds.deps.secretKeys.cache]
  followCredentialChanges({ subscriber: connect(directoryUrl), logger }, keyCaches)
  return {
    deps: {
      authenticator,
      admission,
      commits,
      identityProviders: config.IDENTITY_PROVIDERS,
      onReplayIgnored: ingestMetrics.countIgnoredReplay,
      builds: builds.deps,
      logger,
      now: Date.now,
    },
    isReady: () => {
      const connected = [directoryRedis, ...queueRedis, ...builds.connections].every(redis => redis.status === 'ready')
      if (!connected) return 'redis is not connected'
      return receipts.isReady || 'the secret of receipts is not known yet'
    },
    endWaits: () => builds.deps.verdicts.stop(),
  }
}
