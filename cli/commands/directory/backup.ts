import type { Command } from 'commander'
import { backUpDirectory } from '../../../shared/backup/back-up-directory.ts'
import type { Backup, BackupContents } from '../../../shared/backup/backups.ts'
import type { BackupCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'

const HELP = `
Stores everything that "directory export" prints as a backup in the object store, as the workers do regularly
(DIRECTORY_BACKUP_INTERVAL_S). The backup is one object: all of it is stored, or nothing. It is encrypted if DIRECTORY_BACKUP_KEY is
set. Backups that are too many are removed by the workers (DIRECTORY_BACKUP_KEEP).

${exitCodesHelp({
  [EXIT.failed]:
    'the directory or the object store is unavailable, or the directory has no workspace: there is no new backup',
  [EXIT.conflict]: 'another process is making a backup',
})}

Example:
  $ npm run cli -- directory backup`

/** Adds `directory backup`. */
export function addDirectoryBackup(
  parent: Command,
  { withBackups, print, printError, exit }: BackupCommandContext,
): void {
  parent
    .command('backup')
    .description('back the directory up now')
    .option('--json', 'print the backup as JSON')
    .addHelpText('after', HELP)
    .action(({ json = false }: { json?: boolean }) =>
      withBackups(async connection => {
        const backup = await backUpDirectory(connection)
        if (backup === 'busy') {
          printError('another process is making a backup')
          return exit(EXIT.conflict)
        }
        print(json ? JSON.stringify(summaryOf(backup)) : `${backup.name}: ${describeContents(backup)}`)
      }),
    )
}

/** Returns what the commands print of a backup as JSON. */
export function summaryOf({ name, createdAt, workspaces, records, bytes, isEncrypted }: Backup & BackupContents) {
  return { name, createdAt, workspaces, records, bytes, isEncrypted }
}

function describeContents({ workspaces, records, bytes, isEncrypted }: Backup & BackupContents): string {
  return `${workspaces} workspaces, ${records} records, ${bytes} bytes${isEncrypted ? ', encrypted' : ''}`
}
