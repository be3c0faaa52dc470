import type { Command } from 'commander'
import { purgeLetters } from '../../../letters/purge-letters.ts'
import type { Step } from '../../../letters/select-page.ts'
import { LETTERS_PER_STEP } from '../../../schemas/http/dead-letters.ts'
import type { CommandOutput } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION } from '../../find-workspace.ts'
import { addFilterOptions, type SelectionOptions, selectionOf } from './selection.ts'
import { addSkipped, andSkipped, type Skipped } from './skipped.ts'
import { STEP_TIMEOUT_MS, type WithLetters } from './stores.ts'

const HELP = `
Deletes letters with their bytes, for good. Letters that are being replayed are skipped: run the command again. If it ends
before it is done, run it again too.

${exitCodesHelp({ [EXIT.failed]: 'a store is unavailable; run the command again', [EXIT.notFound]: 'the workspace does not exist' })}

Example:
  $ npm run cli -- dead-letters purge --workspace acme --reason bad_compression --to 2026-11-21T00:00:00Z`

interface PurgeOptions extends SelectionOptions {
  readonly workspace: string
  readonly all?: boolean
  readonly json?: boolean
}

/** Adds `dead-letters purge`. */
export function addPurge(parent: Command, context: CommandOutput, withLetters: WithLetters): void {
  const { print, printError, exit } = context
  addFilterOptions(
    parent
      .command('purge')
      .description('delete dead letters for good')
      .requiredOption(...WORKSPACE_OPTION),
  )
    .option('--id <id...>', 'these letters')
    .option('--all', 'all letters of the workspace')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, json, ...options }: PurgeOptions) => {
      const selection = selectionOf(options)
      if (typeof selection === 'string') {
        printError(selection)
        return exit(EXIT.usage)
      }
      await withLetters(slugOrId, async (stores, { id: workspaceId, slug }) => {
        let purged = 0
        const skipped: Skipped = {}
        let step: Step | undefined = { limit: LETTERS_PER_STEP }
        while (step !== undefined) {
          const done = await purgeLetters(stores, workspaceId, selection, step, AbortSignal.timeout(STEP_TIMEOUT_MS))
          purged += done.purged
          addSkipped(skipped, done.skipped)
          step = done.next && { limit: LETTERS_PER_STEP, after: done.next.after }
        }
        print(
          json
            ? JSON.stringify({ purged, skipped })
            : `dead letters of ${slug}: ${purged} purged${andSkipped(skipped)}`,
        )
      })
    })
}
