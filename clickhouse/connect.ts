import { type ClickHouseSettings, clickhouseAddresses } from '../shared/runtime/config.ts'
import { PermanentError } from '../shared/runtime/errors.ts'
import { type ClickHouseClient, type ClickHouseConnection, createClickHouse } from './client.ts'
import { createClusterClient } from './cluster/cluster.ts'

/** Options of a ClickHouse client that the caller decides rather than the environment. */
export type ConnectClickHouseOptions = Pick<
  ClickHouseConnection,
  'requestTimeoutMs' | 'maxConnections' | 'settings' | 'held'
>

/** Creates the ClickHouse client of the configured server or cluster and its database. */
export function connectClickHouse(
  settings: ClickHouseSettings,
  options: ConnectClickHouseOptions = {},
): ClickHouseClient {
  const { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database } = settings
  const access = { user: settings.CLICKHOUSE_USER, password: settings.CLICKHOUSE_PASSWORD }
  const cluster = clusterOf(settings)
  if (cluster === undefined) return createClickHouse({ url, ...access, database, ...options })
  return createClusterClient({ ...cluster, ...access, database, ...options })
}

/** A cluster as the environment names it. */
export interface ConfiguredCluster {
  readonly name: string
  /** Addresses by shard and replica. */
  readonly addresses: readonly (readonly string[])[]
  readonly isReplicated: boolean
}

/** Returns the configured cluster, or undefined if there is none. Throws a PermanentError if several addresses have no cluster. */
export function clusterOf(settings: ClickHouseSettings): ConfiguredCluster | undefined {
  const { CLICKHOUSE_CLUSTER: name, CLICKHOUSE_REPLICATED: replicated } = settings
  const addresses = clickhouseAddresses(settings.CLICKHOUSE_URL)
  if (name !== undefined) {
    return { name, addresses, isReplicated: replicated === 'on' || addresses.some(({ length }) => length > 1) }
  }
  if (addresses.flat().length > 1)
    throw new PermanentError('CLICKHOUSE_URL has several addresses: name their cluster in CLICKHOUSE_CLUSTER')
  return undefined
}
