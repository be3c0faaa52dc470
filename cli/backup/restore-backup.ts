import { backedUpTables, tablesWithRows } from '../../clickhouse/backup/backed-up-tables.ts'
import { restoreTables } from '../../clickhouse/backup/restore-tables.ts'
import { onEachShard } from '../../clickhouse/client.ts'
import { restoreDirectory } from '../../shared/backup/restore-directory.ts'
import { runningWorkers } from '../../shared/queue/watch/worker-heartbeats.ts'
import type { InstallationStores } from '../command-context.ts'
import { atStore } from './at-store.ts'
import { directoryRoot, type Manifest } from './manifest.ts'
import { findFaults } from './verify-backup.ts'

/** The outcome of restoring a backup. Nothing has changed unless it is `restored`. */
type Restored =
  | {
      readonly outcome: 'restored'
      /** A directory with users or workspaces is kept as it is. */
      readonly directory: 'restored' | 'kept'
    }
  /** Something is in the way. */
  | { readonly outcome: 'conflict'; readonly reason: string }
  /** Something of the backup is missing or was changed. */
  | { readonly outcome: 'damaged'; readonly reason: string }

/**
 * Restores the tables of ClickHouse, which must be empty, and the directory if it is empty. Nothing that is there is replaced.
 * Throws a TransientError that names the store which fails; the tables may have a part of their rows then.
 */
export async function restoreBackup(
  stores: InstallationStores,
  manifest: Manifest,
  now: () => number,
): Promise<Restored> {
  const { clickhouse, database } = stores
  const workers = await atStore('queues', () => stores.withQueues(({ common }) => runningWorkers(common)))
  if (workers.length > 0) {
    return conflict(`workers run (${workers.slice(0, 5).join(', ')}): stop them, or wait 30 s if they were killed`)
  }
  const reason = await atStore('clickhouse', () => tablesInTheWay(stores, manifest))
  if (reason !== undefined) return conflict(reason)
  const faults = await findFaults(stores, manifest, { readsFiles: false })
  if (faults.length > 0) return { outcome: 'damaged', reason: faults.join('\n') }
  const directory = await restoreDirectoryOf(stores, manifest, now)
  await atStore('clickhouse', () =>
    onEachShard(clickhouse, async (client, shard) => {
      const copy = manifest.clickhouse.shards[shard]
      if (copy === undefined) return
      const tables = copy.tables.map(({ table }) => table)
      const place = { disk: manifest.clickhouse.disk, path: copy.path }
      await restoreTables(client, database, { database: manifest.clickhouse.database, tables, place })
    }),
  )
  return { outcome: 'restored', directory }
}

const conflict = (reason: string) => ({ outcome: 'conflict', reason }) as const

/** Returns why the tables cannot take the rows of a backup, or undefined if they can. */
async function tablesInTheWay(
  { clickhouse, database }: InstallationStores,
  { clickhouse: { shards } }: Manifest,
): Promise<string | undefined> {
  const present = await onEachShard(clickhouse, client => backedUpTables(client, database))
  if (shards.length > present.length) {
    return `the backup is of ${shards.length} shards, and CLICKHOUSE_URL has ${present.length}: name as many`
  }
  const missing = shards.flatMap(({ tables }, shard) => {
    const names = new Set(present[shard]?.map(({ table }) => table))
    return tables.map(({ table }) => table).filter(table => !names.has(table))
  })
  if (missing.length > 0) {
    return `the database ${database} has no table ${missing[0]}: migrate with the version of the backup or a later one`
  }
  const [filled] = (await onEachShard(clickhouse, client => tablesWithRows(client, database))).flat()
  if (filled === undefined) return undefined
  return `the table ${filled} of ${database} has rows: a backup is restored into an empty database (drop it, and migrate)`
}

async function restoreDirectoryOf(
  { buckets, withTransaction }: InstallationStores,
  { name, directory }: Manifest,
  now: () => number,
): Promise<'restored' | 'kept'> {
  const backups = buckets.directoryBackupsAt(directoryRoot(name))
  const copy = (await backups.list()).find(found => found.name === directory.name)
  if (copy === undefined) throw new Error(`the directory of ${name} was removed`)
  const { outcome } = await withTransaction(redis =>
    restoreDirectory({ redis, backups, now }, copy, { replace: false }),
  )
  return outcome === 'restored' ? 'restored' : 'kept'
}
