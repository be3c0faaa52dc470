import type { Redis } from 'ioredis'
import { type ClickHouseClient, createClickHouse } from '../clickhouse/client.ts'
import { TransientError } from '../shared/errors.ts'
import { withDeadline } from '../shared/lifecycle.ts'
import type { Logger } from '../shared/logger.ts'
import { createObjectStore, type ObjectStore } from '../shared/object-store.ts'
import { connectProducer } from '../shared/redis.ts'
import type { CliConfig } from './config.ts'

export interface Stores {
  readonly redis: Redis
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
}

const CONNECT_TIMEOUT_MS = 10_000
const COMMAND_TIMEOUT_MS = 10_000
/** A mutation rewrites the marks of every part it touches. */
const CLICKHOUSE_TIMEOUT_MS = 600_000

/** Runs a command on the stores, and lets go of them when it has settled. Throws a TransientError when Redis is away. */
export async function withStores<T>(
  config: CliConfig,
  logger: Logger,
  run: (stores: Stores) => Promise<T>,
): Promise<T> {
  const redis = connectProducer(config.CONTROL_REDIS_URL ?? config.REDIS_URL, COMMAND_TIMEOUT_MS, logger)
  const clickhouse = createClickHouse({
    url: config.CLICKHOUSE_URL,
    user: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    requestTimeoutMs: CLICKHOUSE_TIMEOUT_MS,
  })
  const objects = createObjectStore({
    endpoint: config.S3_ENDPOINT,
    region: config.S3_REGION,
    bucket: config.S3_BUCKET,
    accessKeyId: config.AWS_ACCESS_KEY_ID,
    secretAccessKey: config.AWS_SECRET_ACCESS_KEY,
    requestTimeoutMs: 30_000,
  })
  try {
    await untilReady(redis)
    return await run({ redis, clickhouse, objects })
  } finally {
    redis.disconnect()
    objects.close()
    await clickhouse.close()
  }
}

/** Attempts that fail are made again until then. */
function untilReady(redis: Redis): Promise<void> {
  const ready = new Promise<void>(resolve => {
    redis.once('ready', resolve)
  })
  return withDeadline(ready, CONNECT_TIMEOUT_MS, 'late').catch(error => {
    throw new TransientError(`Redis did not answer within ${CONNECT_TIMEOUT_MS} ms`, { cause: error })
  })
}
