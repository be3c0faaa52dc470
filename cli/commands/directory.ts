import { type FileHandle, open } from 'node:fs/promises'
import type { Command } from 'commander'
import { backUpDirectory } from '../../shared/backup/back-up-directory.ts'
import type { Backup, BackupContents } from '../../shared/backup/backups.ts'
import { restoreDirectory } from '../../shared/backup/restore-directory.ts'
import { exportDirectory } from '../../shared/directory/export/export-directory.ts'
import { LineError } from '../../shared/directory/export/read-lines.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { BackupCommandContext, BackupConnection, DirectoryCommandContext } from '../command-context.ts'
import { type ImportOutcome, importDirectory } from '../directory/import.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { counted, printable, rowOf } from '../terminal.ts'

const BACKUP_HELP = `
Stores everything that "directory export" prints as a backup in the object store, as the workers do regularly
(DIRECTORY_BACKUP_INTERVAL_S). The backup is one object: all of it is stored, or nothing. It is encrypted if DIRECTORY_BACKUP_KEY is
set. Without the key, a backup after an encrypted one is refused, unless --plain insists: it contains digests of keys, addresses of
users and the secret of receipts. Backups that are too many are removed by the workers (DIRECTORY_BACKUP_KEEP).

${exitCodesHelp({
  [EXIT.failed]:
    'a store is unavailable, the directory has no workspace, or the newest backup is encrypted: there is no new backup',
  [EXIT.conflict]: 'another process is making a backup',
})}

Example:
  $ npm run cli -- directory backup`

/** Adds `directory backup`. */
export function addDirectoryBackup(parent: Command, { withBackups, print, exit }: BackupCommandContext): void {
  parent
    .command('backup')
    .description('back the directory up now')
    .option('--plain', 'back up without encryption, although the newest backup is encrypted')
    .option('--json', 'print the backup as JSON')
    .addHelpText('after', BACKUP_HELP)
    .action(({ plain: isPlainWanted = false, json = false }: { plain?: boolean; json?: boolean }) =>
      withBackups(async connection => {
        const backup = await backUpDirectory(connection, { isPlainWanted })
        if (backup === 'busy') return exit(EXIT.conflict, 'another process is making a backup')
        print(json ? JSON.stringify(summaryOf(backup)) : `${backup.name}: ${describeContents(backup)}`)
      }),
    )
}

/** Returns what the commands print of a backup as JSON. */
function summaryOf({ name, createdAt, workspaces, records, bytes, isEncrypted }: Backup & BackupContents) {
  return { name, createdAt, workspaces, records, bytes, isEncrypted }
}

function describeContents({ workspaces, records, bytes, isEncrypted }: Backup & BackupContents): string {
  return [
    counted(workspaces, 'workspace'),
    counted(records, 'record'),
    counted(bytes, 'byte'),
    ...(isEncrypted ? ['encrypted'] : []),
  ].join(', ')
}

const BACKUPS_HELP = `
${exitCodesHelp()}

Example:
  $ npm run cli -- directory backups`

const WIDTHS = [36, 10, 10, 12]

/** Adds `directory backups`. */
export function addDirectoryBackups(parent: Command, { withBackups, print }: BackupCommandContext): void {
  parent
    .command('backups')
    .description('list the backups of the directory, newest first')
    .option('--json', 'print each backup as a line of JSON')
    .addHelpText('after', BACKUPS_HELP)
    .action(({ json = false }: { json?: boolean }) =>
      withBackups(async ({ backups }) => {
        if (!json) print(rowOf(['NAME', 'WORKSPACES', 'RECORDS', 'BYTES', 'ENCRYPTED'], WIDTHS))
        for (const backup of await backups.list()) {
          const summary = summaryOf({ ...backup, ...(await backups.contents(backup)) })
          const { name, workspaces, records, bytes, isEncrypted } = summary
          const cells = [name, textOf(workspaces), textOf(records), `${bytes}`, isEncrypted ? 'yes' : 'no']
          print(json ? JSON.stringify(summary) : rowOf(cells, WIDTHS))
        }
      }),
    )
}

const textOf = (count: number) => (Number.isNaN(count) ? '-' : `${count}`)

const RESTORE_HELP = `
Makes the directory what it was at the time of a backup: all of it in one transaction of Redis, or nothing. Every
byte is verified first. Edge, API and workers may run: edges accept the keys at once, and receipts of before can be
read again. Changes after the backup are lost, so a key that was revoked since becomes valid again.

A directory with users or workspaces is refused, unless --replace removes all its records in the same transaction. Stop API,
edge and workers before that: what they change meanwhile may be lost, and what they add meanwhile, such as a release, ends the
command with nothing restored. Keys that are not in the backup stop working within ten seconds.
An edge that has started since the directory was lost may have made another secret of receipts: restart it.

${exitCodesHelp({
  [EXIT.done]: 'the directory is as in the backup',
  [EXIT.failed]:
    'a store is unavailable, or the backup is incomplete, was changed or needs another key: nothing was restored',
  [EXIT.notFound]: 'there is no such backup',
  [EXIT.conflict]: 'the directory is not empty; nothing was restored',
})}

Examples:
  $ npm run cli -- directory restore
  $ npm run cli -- directory restore --backup 20261122T170841123Z-1f9c04ab7d3e2860 --replace`

interface RestoreOptions {
  readonly backup: string
  readonly replace?: boolean
  readonly json?: boolean
}

/** Adds `directory restore`. */
export function addDirectoryRestore(parent: Command, context: BackupCommandContext): void {
  parent
    .command('restore')
    .description('restore the directory from a backup')
    .option('--backup <name>', 'the name of the backup, or "latest"', 'latest')
    .option('--replace', 'remove the records that are there')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', RESTORE_HELP)
    .action((options: RestoreOptions) => context.withBackups(connection => restore(connection, options, context)))
}

async function restore(
  { backups, withTransaction }: BackupConnection,
  { backup: wanted, replace = false, json = false }: RestoreOptions,
  { print, exit, now }: BackupCommandContext,
): Promise<void> {
  const backup = (await backups.list()).find(({ name }) => wanted === 'latest' || name === wanted)
  if (backup === undefined) {
    return exit(
      EXIT.notFound,
      wanted === 'latest' ? 'there is no backup' : `there is no backup ${JSON.stringify(wanted)}`,
    )
  }
  const restored = await withTransaction(redis => restoreDirectory({ redis, backups, now }, backup, { replace }))
  if (restored.outcome === 'not_empty') {
    return exit(EXIT.conflict, 'the directory is not empty: nothing was restored (--replace removes its records)')
  }
  print(
    json
      ? JSON.stringify({ name: backup.name, records: restored.records })
      : describeRestored(backup, restored.records),
  )
}

function describeRestored({ name, createdAt }: Backup, records: Readonly<Record<string, number>>): string {
  const counts = Object.entries(records).map(([kind, count]) => `  ${kind.padEnd(16)}${count}`)
  return [`restored ${name}, the directory of ${createdAt}:`, ...counts].join('\n')
}

const EXPORT_HELP = `
Prints users, workspaces, members, surfaces, keys, releases with their current manifests, and which source maps are
stored, each as one line of JSON: { "kind": …, "record": { "version": 1, … } }. The last line has the kind "end". A
key is printed as digest and salt, never as text. It stays valid where the lines are imported, and a repeated request
that created it gets the same answer. The secret that encrypts the ids of receipts is printed in plain text: protect
the output. Objects (manifests, maps) are in the object store, which is moved separately. KEY_PEPPER moves with the
settings. Queued jobs and uploaded parts of source maps are in the Redis of the queues (REDIS_URL) and are not
printed.

Each record is printed as it was when it was read. A concurrent change may or may not be in the output. To move an
installation, first stop edge and API and let the workers empty the queues. A backup that was taken while they were
running can be imported, too.

${exitCodesHelp({
  [EXIT.done]: 'everything was printed',
  [EXIT.failed]: 'the directory is unavailable or contains an invalid record; the output is incomplete',
})}

Example:
  $ npm run --silent cli -- directory export > directory.jsonl`

/** Adds `directory export`. */
export function addDirectoryExport(parent: Command, { withDirectory, write }: DirectoryCommandContext): void {
  parent
    .command('export')
    .description('print all records as lines of JSON')
    .addHelpText('after', EXPORT_HELP)
    .action(() =>
      withDirectory(async directory => {
        for await (const line of exportDirectory(directory)) await write(`${JSON.stringify(line)}\n`)
      }),
    )
}

const IMPORT_HELP = `
Reads the output of "directory export" from a file or from stdin, and stores it in the directory, line by line. A
record that exists and is equal stays. A record that exists and differs stays as well, and is reported, unless
--replace overwrites it: a key that was revoked since the export then becomes valid again. Nothing is removed, and
records that were removed since the export come back. The following records are never stored, not even with --replace:
a key with the digest of another key, or of a workspace with the id of another key; a manifest older than the current
one, because its object may be deleted; a workspace with the slug of another workspace, and everything that belongs to
it. An import can be repeated after any failure. To move an installation, import before an edge has run on the new
directory, because the edge would create a different secret for receipts.

${exitCodesHelp({
  [EXIT.done]: 'everything is stored as in the lines',
  [EXIT.failed]: 'the directory is unavailable; records that were stored stay',
  [EXIT.usage]: 'a line is invalid or the last line is missing; or the arguments or the environment are invalid',
  [EXIT.conflict]: 'some records differ from the stored ones and were not changed',
})}

Examples:
  $ npm run cli -- directory import directory.jsonl --dry-run
  $ DIRECTORY_REDIS_URL=redis://new.example:6379 npm run cli -- directory import directory.jsonl`

const CONFLICTS_SHOWN = 20

interface ImportCommandOptions {
  readonly replace?: boolean
  readonly dryRun?: boolean
  readonly json?: boolean
}

/** Adds `directory import`. */
export function addDirectoryImport(parent: Command, context: DirectoryCommandContext): void {
  parent
    .command('import')
    .description('store records from lines of JSON')
    .argument('[file]', 'the file to read; without it, stdin')
    .option('--replace', 'overwrite records that differ')
    .option('--dry-run', 'read everything and report what would be done')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', IMPORT_HELP)
    .action((file: string | undefined, options: ImportCommandOptions) => runImport(file, options, context))
}

async function runImport(
  path: string | undefined,
  { replace = false, dryRun = false, json = false }: ImportCommandOptions,
  context: DirectoryCommandContext,
): Promise<void> {
  const { print, printError, withDirectory, exit, now, stdin } = context
  let conflicts = 0
  const onConflict = (message: string) => {
    if (conflicts++ < CONFLICTS_SHOWN) printError(printable(message))
  }
  let file: FileHandle | undefined
  try {
    file = path === undefined ? undefined : await open(path)
  } catch (error) {
    return exit(EXIT.usage, `the file cannot be read: ${describeError(error)}`)
  }
  await withDirectory(async directory => {
    try {
      const pieces = file?.createReadStream() ?? stdin
      const outcome = await importDirectory(directory, pieces, { replace, dryRun, now, onConflict })
      if (conflicts > CONFLICTS_SHOWN) printError(`… and ${conflicts - CONFLICTS_SHOWN} more`)
      print(json ? JSON.stringify(outcome) : describeImported(outcome, dryRun))
      if (outcome.conflicts > 0) exit(EXIT.conflict)
    } catch (error) {
      if (!(error instanceof LineError)) throw error
      printError(printable(error.message))
      exit(EXIT.usage)
    }
  }).finally(() => file?.close())
}

function describeImported({ added, unchanged, replaced, conflicts }: ImportOutcome, dryRun: boolean): string {
  const left = conflicts > 0 ? `, ${conflicts} not changed because they differ` : ''
  return `${dryRun ? 'would be: ' : ''}${added} added, ${unchanged} unchanged, ${replaced} replaced${left}`
}
