import type { Command } from 'commander'
import type { BackupCommandContext } from '../../command-context.ts'
import { exitCodesHelp } from '../../exit-codes.ts'
import { rowOf } from '../../terminal.ts'
import { summaryOf } from './backup.ts'

const HELP = `
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
    .addHelpText('after', HELP)
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
