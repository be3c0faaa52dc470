import { type ClickHouseClient, createClickHouse } from '../clickhouse/client.ts'
import { createObjectStore, type ObjectStore } from '../shared/object-store/object-store.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { CliConfig } from './config.ts'
import { type DirectoryConnection, withDirectory } from './connect.ts'

export interface Stores extends DirectoryConnection {
  readonly clickhouse: ClickHouseClient
  readonly objects: ObjectStore
}

/** A mutation rewrites the marks of every part it touches. */
const CLICKHOUSE_TIMEOUT_MS = 600_000

/** Runs a command on the stores, and lets go of them when it has settled. Throws a TransientError when Redis is away. */
export function withStores<T>(config: CliConfig, logger: Logger, run: (stores: Stores) => Promise<T>): Promise<T> {
  return withDirectory(config, logger, async directory => {
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
      return await run({ ...directory, clickhouse, objects })
    } finally {
      objects.close()
      await clickhouse.close()
    }
  })
}
