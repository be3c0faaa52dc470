import { connectClickHouse } from '../clickhouse/connect.ts'
import { Budget } from '../shared/concurrency/budget.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { readReceiptSecret } from '../shared/directory/receipt-secret.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { connectObjectStore } from '../shared/object-store/connect.ts'
import { connectProducer } from '../shared/queue/redis.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { createAuthenticate } from './auth/authenticate.ts'
import { createTokenVerifier } from './auth/verify-token.ts'
import { type ApiConfig, tokenIssuers } from './config.ts'
import type { ApiDeps } from './deps.ts'

/** The dependencies of the routes, connected. */
export interface ConnectedApi {
  readonly deps: ApiDeps
  readonly isReady: () => Promise<true | string>
}

const DIRECTORY_TIMEOUT_MS = 1_000
/** How many large traces are in memory at once. The skeleton and the tree of the largest trace take 130 MB. */
const LARGE_TRACES_AT_ONCE = 2
/** How many pages of manifests are in memory at once, at up to 8 MiB of files each. */
const MANIFEST_PAGES_AT_ONCE = 4

/** Connects what the routes of the API need. `lifecycle` closes it again, after the server that mounts the routes. */
export function connectApi(
  config: ApiConfig,
  logger: Logger,
  lifecycle: Lifecycle,
  now: () => number = Date.now,
): ConnectedApi {
  const redis = connectProducer(config.CONTROL_REDIS_URL ?? config.REDIS_URL, DIRECTORY_TIMEOUT_MS, logger)
  lifecycle.onStop('redis', () => redis.disconnect())
  const clickhouse = connectClickHouse(config, {
    requestTimeoutMs: config.API_QUERY_TIMEOUT_MS + 1_000,
    maxConnections: 32,
  })
  lifecycle.onStop('clickhouse', () => clickhouse.close())

  const objects = connectObjectStore(config, config.API_QUERY_TIMEOUT_MS)
  lifecycle.onStop('object store', () => objects.close())

  const directory = createDirectory(redis)
  const authenticate = createAuthenticate({
    verifyToken: createTokenVerifier(tokenIssuers(config, logger, now), now),
    directory,
    logger,
    now,
  })
  let wasReady = false
  return {
    deps: {
      authenticate,
      clickhouse,
      directory,
      keyPepper: config.KEY_PEPPER,
      largeTraces: new Budget(LARGE_TRACES_AT_ONCE),
      logger,
      now,
      manifestPages: new Budget(MANIFEST_PAGES_AT_ONCE),
      objects,
      queryTimeoutMs: config.API_QUERY_TIMEOUT_MS,
      receiptSecret: () => readReceiptSecret(redis),
      releases: createReleaseStore(redis),
      replayStreams: config.REPLAY_STREAMS,
      retentionDays: config.RETENTION_DAYS,
    },
    // Once ready, the API stays ready: if ClickHouse is unavailable, a 503 that names the reason is better than no response.
    async isReady() {
      if (wasReady) return true
      if (redis.status !== 'ready') return 'redis is not connected'
      const ping = await clickhouse.ping({ select: false, abort_signal: AbortSignal.timeout(800) })
      wasReady = ping.success
      return wasReady || 'clickhouse does not respond'
    },
  }
}
