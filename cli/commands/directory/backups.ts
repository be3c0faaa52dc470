import type { Command } from 'commander'
import type { BackupCommandContext } from '../../command-context.ts'
import { exitCodesHelp } from '../../exit-codes.ts'
import { rowOf } from '../../terminal.ts'
import { bytesOf, summaryOf } from './backup.ts'

const HELP = `
${exitCodesHelp()}

Example:
  $ npm run cli -- directory backups`

const WIDTHS = [28, 10, 10, 12]

/** Adds `directory backups`. */
export function addDirectoryBackups(parent: Command, { withBackups, print }: BackupCommandContext): void {
  parent
    .command('backups')
    .description('list the backups of the directory, newest first')
    .option('--json', 'print each backup as a line of JSON')
    .addHelpText('after', HELP)
    .action(({ json = false }: { json?: boolean }) =>
      withBackups(async ({ backups }) => {
        const all = await backups.list()
        if (!json) print(rowOf(['NAME', 'WORKSPACES', 'RECORDS', 'BYTES', 'ENCRYPTED'], WIDTHS))
        for (const backup of all) {
          const { name, workspaces, records, parts, isEncrypted } = backup
          const cells = [name, `${workspaces}`, `${records}`, `${bytesOf(parts)}`, isEncrypted ? 'yes' : 'no']
          print(json ? JSON.stringify(summaryOf(backup)) : rowOf(cells, WIDTHS))
        }
      }),
    )
}
