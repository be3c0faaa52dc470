import { DAY_MS } from '../../schemas/units.ts'
import { classifyClickHouseError } from '../client.ts'
import { MAP_DELAY_MS } from '../cluster/shard-maps.ts'
import type { ConfiguredCluster } from '../connect.ts'
import { type ClusterServer, checkCluster } from './check-cluster.ts'
import { clusterForm } from './cluster-form.ts'
import { createClusterTables } from './cluster-tables.ts'
import { type MigrateOptions, migrate } from './migrate.ts'
import { TABLE_SETTINGS } from './table-settings.ts'
import { writeShardMaps } from './write-shard-maps.ts'

/** Settings of the migration of a cluster. */
interface MigrateClusterOptions extends Omit<MigrateOptions, 'adapt'> {
  readonly cluster: ConfiguredCluster
  /** Time until added shards get rows; `MAP_DELAY_MS` if left out. */
  readonly mapDelayMs?: number
  readonly now?: () => number
}

/** A row may wait in Redis before it is stored, and expires with its day. */
const SLACK_DAYS = 7

/**
 * Migrates the servers of a cluster in turn. The clients are as those of `migrate`. Every server has a journal of its own, so
 * that a shard or a replica that is added later gets the same schema. Throws as `migrate` does, also if the servers are not the
 * cluster that the settings name.
 */
export async function migrateCluster(servers: readonly ClusterServer[], options: MigrateClusterOptions): Promise<void> {
  const { cluster, database, tableSettings = TABLE_SETTINGS, retentionDays, now = Date.now } = options
  try {
    await checkCluster(servers, cluster, database)
    for (const server of servers) {
      await migrate(server.client, {
        ...options,
        tableSettings: { ...tableSettings, isReplicated: cluster.isReplicated },
        viewsNeedQuiet: cluster.addresses.some(({ length }) => length > 1),
        adapt: statement => clusterForm(statement, cluster, server),
      })
    }
    for (const { client } of servers) await createClusterTables(client, database, cluster.name)
    await writeShardMaps(servers, {
      database,
      shards: cluster.addresses.length,
      keptMs: (retentionDays + SLACK_DAYS) * DAY_MS,
      delayMs: options.mapDelayMs ?? MAP_DELAY_MS,
      now,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
