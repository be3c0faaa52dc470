import { pino } from 'pino'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { FollowedPartitions } from '../../../shared/queue/registry/queue-feed.ts'
import { QueueLinks } from '../../../shared/queue/registry/queue-links.ts'
import { QueueServers } from '../../../shared/queue/registry/queue-servers.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { letterLimits, workersConfigSchema } from '../../../workers/config.ts'
import { accessTo } from '../../../workers/connect.ts'
import { createWorkerMetrics } from '../../../workers/metrics.ts'
import { POOLS } from '../../../workers/pools/table.ts'
import { readInternalBacklogs } from '../../../workers/queue/backlog.ts'
import { RedisLetterQuota } from '../../../workers/queue/letter-quota.ts'
import { ColumnMemory } from '../../../workers/sink/column-memory.ts'
import { ExpressFirst } from '../../../workers/sink/pace/express-first.ts'
import { connectDatabase } from '../cluster/connect.ts'
import type { ServiceAddresses } from './services.ts'

/** Pools that run in this process. */
export interface TestPools {
  /** Returns the text of /metrics. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

/**
 * Starts pools of the workers in this process; `redisUrl` names the database of Redis, `database` that of ClickHouse. The
 * directory is in the same database of Redis unless `directoryRedisUrl` names another. `settings` replace defaults.
 */
export function startPools(
  queues: readonly QueueName[],
  { redisUrl, directoryRedisUrl = redisUrl, clickhouseUrl, s3 }: ServiceAddresses & { directoryRedisUrl?: string },
  database: string,
  settings: Record<string, string> = {},
): TestPools {
  const logger = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const config = parseConfig(workersConfigSchema, {
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: directoryRedisUrl,
    BATCH_MAX_AGE_MS: '20',
    JOB_STALLED_CHECK_MS: '500',
    ...settings,
  })
  const redis = new QueueServers(redisUrl).connectConsumer(logger)
  const directoryRedis = connectConsumer(directoryRedisUrl, logger)
  const clickhouse = connectDatabase(clickhouseUrl, database)
  const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
  const servers = new QueueServers(redisUrl)
  const links = new QueueLinks({ servers, common: redis, connect: to => connectConsumer(to, logger) })
  const closers: (() => unknown)[] = []
  const lifecycle = { onStop: (_name: string, close: () => unknown) => void closers.push(close) }
  const partitions = new FollowedPartitions({ queues: links, logger })
  const metrics = createMetrics('test')
  const stopping = new AbortController()
  const releases = createReleaseStore(directoryRedis)
  const stores = {
    redis,
    partitions,
    clickhouse,
    objects,
    releases,
    columnMemory: new ColumnMemory(),
    expressFirst: new ExpressFirst(),
  }
  const workerMetrics = createWorkerMetrics(metrics)
  workerMetrics.watchBacklogs(() => readInternalBacklogs(links))
  const letterQuota = new RedisLetterQuota(redis, letterLimits(config), workerMetrics.observeLetters)
  const at = accessTo(links, config, logger, lifecycle)
  const deps = { ...stores, at, servers, config, letterQuota, logger, stopping: stopping.signal }
  const pools = queues.map(queue => POOLS[queue]({ ...deps, metrics: workerMetrics }))
  return {
    metrics: () => metrics.registry.metrics(),
    async stop() {
      stopping.abort()
      await Promise.all(pools.map(pool => pool.close()))
      partitions.stop()
      for (const close of closers) close()
      links.close()
      objects.close()
      await clickhouse.close()
      redis.disconnect()
      directoryRedis.disconnect()
    },
  }
}
