import { connectClickHouse } from '../clickhouse/connect.ts'
import { adoptOnConnect, whenAdopted } from '../shared/directory/adopt.ts'
import { createReleaseStore } from '../shared/directory/release-store.ts'
import { connectObjectStore } from '../shared/object-store/connect.ts'
import { connectConsumer } from '../shared/queue/redis.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { ColumnMemory } from './batch/column-memory.ts'
import { letterLimits, type WorkersConfig } from './config.ts'
import type { PoolsDeps } from './deps.ts'
import type { WorkerMetrics } from './metrics.ts'
import { readInternalBacklogs } from './queue/backlog.ts'
import { RedisLetterQuota } from './queue/letter-quota.ts'
import { openPayloadReader } from './queue/payloads/payload-reader.ts'
import { createJobAdder } from './queue/sweep.ts'

/** Connects what the pools of a process need. `lifecycle` closes the connections after the pools that use them. */
export function connectWorkers(
  config: WorkersConfig,
  { logger, lifecycle, metrics }: { logger: Logger; lifecycle: Lifecycle; metrics: WorkerMetrics },
  stopping: AbortSignal,
): PoolsDeps {
  const redis = connectConsumer(config.REDIS_URL, logger)
  lifecycle.onStop('redis', () => redis.disconnect())
  metrics.watchBacklogs(() => readInternalBacklogs(redis))
  const directoryRedis = connectConsumer(config.CONTROL_REDIS_URL, logger)
  lifecycle.onStop('directory redis', () => directoryRedis.disconnect())
  const payloads = openPayloadReader(redis, logger, { maxIdleBytes: config.POOL_FETCHED_BYTES })
  lifecycle.onStop('payload reader', () => payloads.close())
  const clickhouse = connectClickHouse(config)
  lifecycle.onStop('clickhouse', () => clickhouse.close())
  const objects = connectObjectStore(config)
  lifecycle.onStop('object store', () => objects.close())
  return {
    config,
    redis,
    payloads,
    columnMemory: new ColumnMemory(),
    clickhouse,
    objects,
    releases: whenAdopted(createReleaseStore(directoryRedis), adoptOnConnect(directoryRedis, logger)),
    addJobs: createJobAdder(redis).add,
    letterQuota: new RedisLetterQuota(redis, letterLimits(config), metrics.observeLetters),
    logger,
    metrics,
    stopping,
  }
}
