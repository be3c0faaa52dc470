import type { Command } from 'commander'
import { z } from 'zod'
import { atStore } from '../backup/at-store.ts'
import { createBackup } from '../backup/create-backup.ts'
import { backupNames, findManifest, type Manifest, readManifest, rowsOf } from '../backup/manifest.ts'
import { restoreBackup } from '../backup/restore-backup.ts'
import { verifyBackup } from '../backup/verify-backup.ts'
import type { BackupBuckets, InstallationBackupContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { counted, parsedBy, printable, rowOf } from '../terminal.ts'

/** Adds `backup`: backups of the whole installation. */
export function addBackup(parent: Command, context: InstallationBackupContext): void {
  const backup = parent
    .command('backup')
    .description('backups of the whole installation: create, list, verify, restore')
  addCreate(backup, context)
  addList(backup, context)
  addVerify(backup, context)
  addRestore(backup, context)
}

const BUCKET = '--bucket <name>'
const BUCKET_TEXT = 'the bucket of the backups, at the same endpoint; S3_BUCKET if left out'
const bucketSchema = z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'It must be the name of a bucket.')
const UNAVAILABLE = 'a store is unavailable, and the error names it'

interface BackupOptions {
  readonly bucket?: string
  readonly json?: boolean
}

const CREATE_HELP = `
Backs up directory, ClickHouse and the list of the objects, in this order, while everything runs. ClickHouse writes its files itself,
to a disk of its configuration (deploy/clickhouse); all else is in the bucket, below backups/. Objects are not copied: keep their
versions, or replicate the bucket. The command looks at every store first. It ends with the manifest, once no batch that may be in the
backup in part waits in Redis: without its manifest a backup is not listed and not restored, and can be made again at once. Only the
directory is encrypted, if DIRECTORY_BACKUP_KEY is set. Remove old backups by docs/operate/backup-and-restore.md#remove-old-backups.

${exitCodesHelp({
  [EXIT.done]: 'the backup is complete',
  [EXIT.failed]: `${UNAVAILABLE}, or the backup would be plain after an encrypted one: there is no new backup`,
  [EXIT.conflict]:
    'the directory is being backed up, or a batch stays stored in part: start the workers and repeat the command',
})}

Example:
  $ npm run cli -- backup create --bucket penstock-backups`

function addCreate(parent: Command, context: InstallationBackupContext): void {
  const { print, exit, now, withInstallation } = context
  parent
    .command('create')
    .description('back up directory, ClickHouse and the list of the objects')
    .option(BUCKET, BUCKET_TEXT, parsedBy(bucketSchema))
    .option('--disk <name>', 'the disk of ClickHouse for its files', 'backups')
    .option('--plain', 'do not encrypt the directory, although the newest backup is encrypted')
    .option('--json', 'print the manifest as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(({ bucket, disk, json, plain = false }: BackupOptions & { disk: string; plain?: boolean }) =>
      withInstallation(bucket, async stores => {
        const created = await createBackup(stores, { disk, isPlainWanted: plain, now })
        if (created.outcome === 'busy') return exit(EXIT.conflict, 'another process is backing the directory up')
        if (created.outcome === 'stored_in_part') {
          const queues = [...new Set(created.jobs.map(({ queue }) => queue))].join(', ')
          const jobs = counted(created.jobs.length, 'job')
          return exit(
            EXIT.conflict,
            `${jobs} of ${queues} stayed stored in part, so there is no backup: start the workers`,
          )
        }
        print(json ? JSON.stringify(created.manifest) : `${created.manifest.name}: ${describe(created.manifest)}`)
      }),
    )
}

function describe(manifest: Manifest): string {
  const { directory, objects } = manifest
  return [
    `directory of ${counted(directory.records, 'record')}${directory.isEncrypted ? ', encrypted' : ''}`,
    counted(rowsOf(manifest), 'row'),
    `list of ${counted(objects.count, 'object')}`,
  ].join('; ')
}

const LIST_HELP = `
${exitCodesHelp({ [EXIT.failed]: UNAVAILABLE })}

Example:
  $ npm run cli -- backup list`

const WIDTHS = [20, 12, 10, 14, 12, 12]

function addList(parent: Command, { print, withBuckets }: InstallationBackupContext): void {
  parent
    .command('list')
    .description('list the complete backups, newest first')
    .option(BUCKET, BUCKET_TEXT, parsedBy(bucketSchema))
    .option('--json', 'print each manifest as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ bucket, json }: BackupOptions) =>
      withBuckets(bucket, ({ target }) =>
        atStore('target', async () => {
          if (!json) print(rowOf(['NAME', 'VERSION', 'RECORDS', 'ROWS', 'OBJECTS', 'ENCRYPTED'], WIDTHS))
          for (const name of await backupNames(target)) {
            const manifest = await readManifest(target, name)
            if (manifest !== undefined) print(json ? JSON.stringify(manifest) : rowOf(cellsOf(manifest), WIDTHS))
          }
        }),
      ),
    )
}

function cellsOf(manifest: Manifest): string[] {
  const { name, penstock, directory, objects } = manifest
  const counts = [directory.records, rowsOf(manifest), objects.count].map(String)
  return [name, penstock.version, ...counts, directory.isEncrypted ? 'yes' : 'no']
}

const VERIFY_HELP = `
Reads all of a backup: every byte of the directory and of the files of ClickHouse, which takes as long as reading them from their disk.
Compares size and ETag of each object that was listed. An object that was deleted since, by a retention, an erasure or a mistake, is
one that a restored row would miss. Replays and dead letters of before RETENTION_DAYS are not expected. DIRECTORY_BACKUP_KEY must be
the key of the backup.

${exitCodesHelp({
  [EXIT.done]: 'all of it is there',
  [EXIT.failed]: UNAVAILABLE,
  [EXIT.notFound]: 'there is no such backup',
  [EXIT.differs]: 'something is missing or was changed; each is a line',
})}

Example:
  $ npm run cli -- backup verify --backup latest`

interface NamedOptions extends BackupOptions {
  readonly backup: string
}

function addVerify(parent: Command, context: InstallationBackupContext): void {
  const { print, exit, now, withInstallation } = context
  parent
    .command('verify')
    .description('look whether all of a backup is there')
    .option('--backup <name>', 'the name of the backup, or "latest"', 'latest')
    .option(BUCKET, BUCKET_TEXT, parsedBy(bucketSchema))
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', VERIFY_HELP)
    .action(({ backup, bucket, json }: NamedOptions) =>
      withInstallation(bucket, async stores => {
        const manifest = await find(stores.buckets, backup, context)
        if (manifest === undefined) return
        const verified = await verifyBackup(stores, manifest, now)
        const { faults, furtherFaults, expiredObjects } = verified
        if (json) print(JSON.stringify({ name: manifest.name, ...verified }))
        else {
          for (const fault of faults) print(printable(fault))
          if (furtherFaults > 0) print(`… and ${furtherFaults} more`)
          const expired = expiredObjects === 0 ? '' : `; ${counted(expiredObjects, 'object')} expired since`
          print(
            faults.length === 0
              ? `${manifest.name} is whole: ${describe(manifest)}${expired}`
              : `${manifest.name} is not whole: ${counted(faults.length + furtherFaults, 'fault')}`,
          )
        }
        if (faults.length > 0) exit(EXIT.differs)
      }),
    )
}

const RESTORE_HELP = `
Restores the tables of ClickHouse from a backup on its disk, and the directory too if it is empty. Nothing that is there is replaced. Before it, stop
the workers and run the migrations: the tables must be there, and empty. Requests that wait in Redis are stored once the workers run
again. Rows that were stored after the backup are lost. After a failure, drop the database, migrate, and repeat the command.

${exitCodesHelp({
  [EXIT.done]: 'the tables are as in the backup, and the directory if it was empty',
  [EXIT.failed]: UNAVAILABLE,
  [EXIT.notFound]: 'there is no such backup',
  [EXIT.conflict]: 'workers run, or tables are missing or not empty: nothing was restored',
  [EXIT.differs]: 'something of the backup is missing or was changed: nothing was restored',
})}

Example:
  $ npm run cli -- backup restore --backup latest`

function addRestore(parent: Command, context: InstallationBackupContext): void {
  const { print, exit, now, withInstallation } = context
  parent
    .command('restore')
    .description('restore an empty ClickHouse, and the directory if it is empty')
    .option('--backup <name>', 'the name of the backup, or "latest"', 'latest')
    .option(BUCKET, BUCKET_TEXT, parsedBy(bucketSchema))
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', RESTORE_HELP)
    .action(({ backup, bucket, json }: NamedOptions) =>
      withInstallation(bucket, async stores => {
        const manifest = await find(stores.buckets, backup, context)
        if (manifest === undefined) return
        const restored = await restoreBackup(stores, manifest, now)
        if (restored.outcome === 'damaged') return exit(EXIT.differs, `nothing was restored:\n${restored.reason}`)
        if (restored.outcome === 'conflict') return exit(EXIT.conflict, `nothing was restored: ${restored.reason}`)
        const { name, storedUntil } = manifest
        const { directory } = restored
        if (json) return print(JSON.stringify({ name, storedUntil, rows: rowsOf(manifest), directory }))
        print(
          `restored ${name}: ${counted(rowsOf(manifest), 'row')}, all that were stored until ${storedUntil}\n` +
            `the directory was ${directory === 'restored' ? 'empty, and is restored' : 'not empty, and is kept as it is'}`,
        )
      }),
    )
}

/** Returns a manifest. If there is none, only the error is printed. */
async function find(
  { target }: BackupBuckets,
  backup: string,
  { exit }: InstallationBackupContext,
): Promise<Manifest | undefined> {
  const manifest = await atStore('target', () => findManifest(target, backup))
  if (manifest === undefined) {
    exit(EXIT.notFound, backup === 'latest' ? 'there is no backup' : `there is no backup ${JSON.stringify(backup)}`)
  }
  return manifest
}
