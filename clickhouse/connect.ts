import type { ClickHouseSettings } from '../shared/runtime/config.ts'
import { type ClickHouseClient, type ClickHouseConnection, createClickHouse } from './client.ts'

/** Options of a ClickHouse client that the caller decides rather than the environment. */
export interface ConnectClickHouseOptions
  extends Pick<ClickHouseConnection, 'requestTimeoutMs' | 'maxConnections' | 'settings'> {
  /** Connects without selecting the configured database, for migrations that create it. */
  readonly withoutDatabase?: boolean
}

/** Creates the ClickHouse client of the configured server and database. */
export function connectClickHouse(
  settings: ClickHouseSettings,
  { withoutDatabase = false, ...options }: ConnectClickHouseOptions = {},
): ClickHouseClient {
  return createClickHouse({
    url: settings.CLICKHOUSE_URL,
    user: settings.CLICKHOUSE_USER,
    password: settings.CLICKHOUSE_PASSWORD,
    ...(withoutDatabase ? {} : { database: settings.CLICKHOUSE_DATABASE }),
    ...options,
  })
}
