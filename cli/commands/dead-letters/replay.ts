import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { replayLetters, type SkipReason } from '../../../letters/replay-letters.ts'
import type { Step } from '../../../letters/select-page.ts'
import type { CommandOutput } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION } from '../../find-workspace.ts'
import { addFilterOptions, type SelectionOptions, selectionOf } from './selection.ts'
import { LETTERS_PER_STEP, STEP_TIMEOUT_MS, type WithLetters } from './stores.ts'

const HELP = `
Puts requests back into the queues that refused them, oldest first, and ends when all are in their queues: a worker stores
them. Each is stored exactly once, also if the command runs several times at once, or ends before it is done. Then run it
again. It waits while the queues have no room, so that requests of clients go first.

${exitCodesHelp({ [EXIT.failed]: 'a store is unavailable; run the command again', [EXIT.notFound]: 'the workspace does not exist' })}

Examples:
  $ npm run cli -- dead-letters replay --workspace acme --reason decoder_fault
  $ npm run cli -- dead-letters replay --workspace acme --id dlt_…`

/** How long the command waits while the queues have no room. */
const BUSY_MS = 500

interface ReplayOptions extends SelectionOptions {
  readonly workspace: string
  readonly all?: boolean
  readonly json?: boolean
}

/** Adds `dead-letters replay`. */
export function addReplay(parent: Command, context: CommandOutput, withLetters: WithLetters): void {
  const { print, printError, exit } = context
  addFilterOptions(
    parent
      .command('replay')
      .description('store dead letters again')
      .requiredOption(...WORKSPACE_OPTION),
  )
    .option('--id <id...>', 'these letters')
    .option('--all', 'all letters of the workspace')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, json, ...options }: ReplayOptions) => {
      const selection = selectionOf(options)
      if (typeof selection === 'string') {
        printError(selection)
        return exit(EXIT.usage)
      }
      await withLetters(slugOrId, async (stores, { id: workspaceId, slug }) => {
        let replayed = 0
        const skipped: Partial<Record<SkipReason, number>> = {}
        let step: Step = { limit: LETTERS_PER_STEP }
        for (;;) {
          const done = await replayLetters(stores, workspaceId, selection, step, AbortSignal.timeout(STEP_TIMEOUT_MS))
          replayed += done.replayed
          // A step that is repeated meets the letters again that it has just replayed.
          if (!done.isBusy) for (const { reason } of done.skipped) skipped[reason] = (skipped[reason] ?? 0) + 1
          if (done.next === undefined) break
          step = { ...step, after: done.next.after }
          if (done.isBusy) await delay(BUSY_MS)
        }
        const others = Object.entries(skipped).map(([reason, count]) => `, ${count} skipped (${reason})`)
        print(
          json
            ? JSON.stringify({ replayed, skipped })
            : `dead letters of ${slug}: ${replayed} replayed${others.join('')}`,
        )
      })
    })
}
