import { type TableCopy, withOpenedBackup } from '../../clickhouse/backup/opened-backup.ts'
import { clickHouseCode, onEachShard } from '../../clickhouse/client.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { errorMessage, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { InstallationStores } from '../command-context.ts'
import { atStore } from './at-store.ts'
import { directoryRoot, type Manifest } from './manifest.ts'
import { differencesOf, LISTED_PREFIXES, objectsBelow, readLists } from './object-lists.ts'

/** The outcome of comparing a backup with what the stores have. */
interface Verification {
  /** Each is a line: something that is missing or was changed. */
  readonly faults: readonly string[]
  /** Faults that are not in `faults`, because there are too many. */
  readonly furtherFaults: number
  /** Listed objects that are not in the bucket and have expired: a restored row that names them expires too. */
  readonly expiredObjects: number
}

const FAULTS_SHOWN = 20
/** Kinds of objects that expire with their rows. */
const EXPIRING = ['dead-letters/', 'replays/']

/**
 * Returns what is missing of a backup: bytes of the directory, parts of ClickHouse, all of whose files are read, and objects that
 * the rows may name, by size and ETag. Throws a TransientError that names the store which is unavailable.
 */
export async function verifyBackup(
  stores: InstallationStores,
  manifest: Manifest,
  now: () => number,
): Promise<Verification> {
  const faults = await findFaults(stores, manifest, { readsFiles: true })
  const { target, objects, retentionDays } = stores.buckets
  let expiredObjects = 0
  const compareObjects = async () => {
    const present = objectsBelow(objects, LISTED_PREFIXES)
    for await (const { listed, fault } of differencesOf(readLists(target, manifest.objects), present)) {
      const isExpiring = EXPIRING.some(prefix => listed.key.startsWith(prefix))
      const hasExpired = isExpiring && listed.lastModifiedMs < now() - (retentionDays + 1) * DAY_MS
      if (fault === 'missing' && hasExpired) expiredObjects++
      else faults.push(`${fault} since the backup: ${listed.key}`)
    }
  }
  faults.push(...(await atStore('objects', () => damageOf(compareObjects))))
  const shown = faults.slice(0, FAULTS_SHOWN)
  return { faults: shown, furtherFaults: faults.length - shown.length, expiredObjects }
}

/**
 * Returns what is missing or was changed of the directory and of the parts in a backup. Reads the files of the parts only if asked
 * to. Throws a TransientError that names the store which is unavailable.
 */
export async function findFaults(
  { buckets, clickhouse }: InstallationStores,
  { name, directory, clickhouse: { database, disk, shards } }: Manifest,
  { readsFiles }: { readonly readsFiles: boolean },
): Promise<string[]> {
  const backups = buckets.directoryBackupsAt(directoryRoot(name))
  const directoryFaults = await atStore('target', async () => {
    const copy = (await backups.list()).find(found => found.name === directory.name)
    if (copy === undefined) return [`missing: the directory, ${directoryRoot(name)}${directory.name}`]
    return damageOf(() => backups.read(copy))
  })
  const partFaults = await atStore('clickhouse', () =>
    onEachShard(clickhouse, async (client, shard) => {
      const copy = shards[shard]
      if (copy === undefined) return []
      const found: string[] = []
      const open = () =>
        withOpenedBackup(client, database, { disk, path: copy.path }, async backup => {
          found.push(...differencesOfTables(copy.tables, await backup.tables()))
          if (!readsFiles) return
          for (const { table } of copy.tables) {
            for (const damage of await backup.damagedParts(table)) found.push(`changed: ${table}, ${damage}`)
          }
        })
      const damage = await damageOf(open)
      return [...found, ...damage.map(text => `shard ${shard + 1}, ${copy.path} on the disk ${disk}: ${text}`)]
    }),
  )
  return [...directoryFaults, ...partFaults.flat()]
}

function differencesOfTables(written: readonly TableCopy[], present: readonly TableCopy[]): string[] {
  const byName = new Map(present.map(table => [table.table, table]))
  return written.flatMap(({ table, parts, rows, checksum }) => {
    const found = byName.get(table)
    if (found?.checksum === checksum) return []
    const has = found ? `${found.rows} rows in ${found.parts} parts` : 'nothing'
    return [`changed: ${table} has ${has}, and had ${rows} rows in ${parts} parts`]
  })
}

/** Runs a comparison and returns its damage as a text. A store that does not answer is an error instead. */
async function damageOf(compare: () => Promise<unknown>): Promise<string[]> {
  try {
    await compare()
    return []
  } catch (error) {
    const isAnswer = clickHouseCode(error) !== undefined
    if (!isAnswer && (error instanceof TransientError || error instanceof PermanentError)) throw error
    return [errorMessage(error)]
  }
}
