import type { Command } from 'commander'
import type { Backup } from '../../../shared/backup/backups.ts'
import { restoreDirectory } from '../../../shared/backup/restore-directory.ts'
import type { BackupCommandContext, BackupConnection } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'

const HELP = `
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
    .addHelpText('after', HELP)
    .action((options: RestoreOptions) => context.withBackups(connection => restore(connection, options, context)))
}

async function restore(
  { backups, withTransaction }: BackupConnection,
  { backup: wanted, replace = false, json = false }: RestoreOptions,
  { print, printError, exit, now }: BackupCommandContext,
): Promise<void> {
  const backup = (await backups.list()).find(({ name }) => wanted === 'latest' || name === wanted)
  if (backup === undefined) {
    printError(wanted === 'latest' ? 'there is no backup' : `there is no backup ${JSON.stringify(wanted)}`)
    return exit(EXIT.notFound)
  }
  const restored = await withTransaction(redis => restoreDirectory({ redis, backups, now }, backup, { replace }))
  if (restored.outcome === 'not_empty') {
    printError('the directory is not empty: nothing was restored (--replace removes its records)')
    return exit(EXIT.conflict)
  }
  print(json ? JSON.stringify({ name: backup.name, records: restored.records }) : describe(backup, restored.records))
}

function describe({ name, createdAt }: Backup, records: Readonly<Record<string, number>>): string {
  const counts = Object.entries(records).map(([kind, count]) => `  ${kind.padEnd(16)}${count}`)
  return [`restored ${name}, the directory of ${createdAt}:`, ...counts].join('\n')
}
