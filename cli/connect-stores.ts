import type { ClickHouseClient } from '../clickhouse/client.ts'
import { connectClickHouse } from '../clickhouse/connect.ts'
import { connectObjectStore } from '../shared/object-store/connect.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
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
    const clickhouse = connectClickHouse(config, { requestTimeoutMs: CLICKHOUSE_TIMEOUT_MS })
    const objects = connectObjectStore(config)
    try {
      return await run({ ...directory, clickhouse, objects })
    } finally {
      objects.close()
      await clickhouse.close()
    }
  })
}
