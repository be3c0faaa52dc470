import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { backUpTables } from '../../clickhouse/backup/back-up-tables.ts'
import { backedUpTables, hasDisk } from '../../clickhouse/backup/backed-up-tables.ts'
import { type TableCopy, withOpenedBackup } from '../../clickhouse/backup/opened-backup.ts'
import { type ClickHouseClient, onEachShard } from '../../clickhouse/client.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { backUpDirectory } from '../../shared/backup/back-up-directory.ts'
import { plainAfterEncrypted } from '../../shared/backup/backups.ts'
import { BUILD } from '../../shared/runtime/build-info.ts'
import type { InstallationStores } from '../command-context.ts'
import { atStore } from './at-store.ts'
import { backupName, dataPrefix, directoryRoot, findManifest, type Manifest, writeManifest } from './manifest.ts'
import { LISTED_PREFIXES, objectsBelow, writeLists } from './object-lists.ts'
import { jobsStoredInPart, type NamedJob, untilStored } from './stored-in-part.ts'

/** Options of `createBackup`. */
interface CreateOptions {
  /** Disk on which the servers of ClickHouse write their files. */
  readonly disk: string
  /** Whether a backup with a plain directory may follow an encrypted one. */
  readonly isPlainWanted: boolean
  readonly now: () => number
  /** How long to wait for jobs that are stored in part; five minutes if left out. */
  readonly waitMs?: number
}

/** The outcome. There is no backup unless it is `created`. */
type Created =
  | { readonly outcome: 'created'; readonly manifest: Manifest }
  /** Another process was backing the directory up all the time. */
  | { readonly outcome: 'busy' }
  /** These jobs are stored in part, and no worker continued them in time. */
  | { readonly outcome: 'stored_in_part'; readonly jobs: readonly NamedJob[] }

const WAIT_MS = 5 * MINUTE_MS
/** A regular backup of the directory takes seconds. */
const BUSY_MS = MINUTE_MS
const POLL_MS = 250

/**
 * Backs an installation up while it runs. The order is that of what may be missing:
 *
 * 1. the directory: a deletion that it has recorded as done is done in the rows that follow;
 * 2. the tables of ClickHouse, on all shards at once;
 * 3. a wait until no job that may be in the tables in part is in Redis any more (`untilStored`);
 * 4. the list of the objects: each that a row names is in it, or was deleted meanwhile;
 * 5. the manifest. Without it there is no backup, so an interruption leaves only objects that nothing names.
 *
 * Looks at every store first. Throws a TransientError that names the store which does not answer, and a BackupError if the
 * directory would be plain after an encrypted one.
 */
export async function createBackup(stores: InstallationStores, options: CreateOptions): Promise<Created> {
  const { target, objects } = stores.buckets
  await checkStores(stores, options)
  const beganAtMs = options.now()
  const name = backupName(beganAtMs)
  const directory = await backUpDirectoryTo(stores, directoryRoot(name))
  if (directory === 'busy') return { outcome: 'busy' }
  const storedUntilMs = options.now()
  const shards = await atStore('clickhouse', () => backUpShards(stores, options.disk, name))
  const left = await atStore('queues', () =>
    stores.withQueues(queues => untilStored(queues, { deadlineMs: options.waitMs ?? WAIT_MS, pollMs: POLL_MS })),
  )
  if (left.length > 0) return { outcome: 'stored_in_part', jobs: left }
  const listed = await atStore('objects', () =>
    writeLists(target, `${dataPrefix(name)}objects/`, objectsBelow(objects, LISTED_PREFIXES)),
  )
  const days = shards.flatMap(({ days }) => days).sort()
  const [first, last] = [days[0], days.at(-1)]
  const manifest: Manifest = {
    version: 1,
    name,
    beganAt: new Date(beganAtMs).toISOString(),
    storedUntil: new Date(storedUntilMs).toISOString(),
    endedAt: new Date(options.now()).toISOString(),
    penstock: BUILD,
    directory,
    clickhouse: {
      database: stores.database,
      disk: options.disk,
      ...(first !== undefined && last !== undefined && { days: { first, last } }),
      shards: shards.map(({ path, tables }) => ({ path, tables: [...tables] })),
    },
    objects: listed,
  }
  await atStore('target', () => writeManifest(target, manifest))
  return { outcome: 'created', manifest }
}

/** Looks at every store before anything is written, and at how the backup before was made. */
async function checkStores(stores: InstallationStores, { disk, isPlainWanted }: CreateOptions): Promise<void> {
  const { buckets, backups, withQueues, clickhouse, database } = stores
  const latest = await atStore('target', () => findManifest(buckets.target, 'latest'))
  await atStore('objects', async () => {
    for await (const _page of buckets.objects.list(LISTED_PREFIXES[0] ?? '')) break
  })
  await atStore('queues', () => withQueues(jobsStoredInPart))
  await atStore('clickhouse', () =>
    onEachShard(clickhouse, async shard => {
      if ((await backedUpTables(shard, database)).length === 0) {
        throw new Error(`the database ${database} has no tables`)
      }
      if (!(await hasDisk(shard, disk))) {
        throw new Error(`it has no disk "${disk}" for backups: configure one (deploy/clickhouse/README.md)`)
      }
    }),
  )
  if (isPlainWanted || buckets.isEncrypting) return
  if (latest?.directory.isEncrypted) throw plainAfterEncrypted(latest.name)
  await backups.assertNotPlainAfterEncrypted()
}

/** Makes a backup of the directory as the workers do, and copies it below `root`, because they remove theirs after a time. */
async function backUpDirectoryTo(
  { redis, store, backups, buckets: { objects, target } }: InstallationStores,
  root: string,
): Promise<Manifest['directory'] | 'busy'> {
  const endAtMs = performance.now() + BUSY_MS
  for (;;) {
    // Whether it may be plain was decided before.
    const made = await backUpDirectory({ redis, store, backups }, { isPlainWanted: true })
    if (made !== 'busy') {
      const { key, name, bytes, workspaces, records, isEncrypted } = made
      const object = await atStore('objects', () => objects.get(key, bytes))
      if (object === undefined) throw new Error(`the backup ${name} of the directory was removed`)
      const copyKey = root + key.slice(key.lastIndexOf('/') + 1)
      await atStore('target', () => target.put(copyKey, object.body, { contentType: 'application/octet-stream' }))
      return { name, workspaces, records, isEncrypted }
    }
    if (performance.now() > endAtMs) return 'busy'
    await delay(POLL_MS)
  }
}

/** A shard in a backup. */
interface ShardCopy {
  /** Path of its files on the disk. */
  readonly path: string
  readonly tables: readonly TableCopy[]
  /** Days of arrival. */
  readonly days: readonly string[]
}

/** Backs all shards up at once, so that their rows are from one moment as far as possible. */
async function backUpShards(
  { clickhouse, database }: InstallationStores,
  disk: string,
  name: string,
): Promise<readonly ShardCopy[]> {
  const { shards } = clickhouse
  const backUp = async (client: ClickHouseClient, shard: number): Promise<ShardCopy> => {
    // Another attempt, with another replica, has a place of its own.
    const path = `${name}/shard-${shard + 1}-${randomUUID().slice(0, 8)}`
    await backUpTables(client, database, { disk, path })
    const found = await withOpenedBackup(client, database, { disk, path }, backup => backup.tables())
    return { path, tables: found.map(({ days, ...table }) => table), days: found.flatMap(({ days }) => days) }
  }
  if (shards === undefined) return [await backUp(clickhouse, 0)]
  const numbers = Array.from({ length: shards.count }, (_, shard) => shard)
  return Promise.all(numbers.map(shard => shards.onShard(shard, client => backUp(client, shard))))
}
