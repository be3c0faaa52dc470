import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { purgeLetters } from '../../../letters/purge-letters.ts'
import { type ReplayStep, replayLetters, type SkippedLetter } from '../../../letters/replay-letters.ts'
import { compareKeys, type Step } from '../../../letters/select-page.ts'
import { LETTERS_PER_STEP } from '../../../schemas/http/dead-letters.ts'
import type { CommandOutput } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION } from '../../find-workspace.ts'
import {
  addFilterOptions,
  addSkipped,
  andSkipped,
  type SelectionOptions,
  type Skipped,
  STEP_TIMEOUT_MS,
  selectionOf,
  type WithLetters,
} from './selection.ts'

const REPLAY_HELP = `
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
  const { print, exit } = context
  addFilterOptions(
    parent
      .command('replay')
      .description('store dead letters again')
      .requiredOption(...WORKSPACE_OPTION),
  )
    .option('--id <id...>', 'these letters')
    .option('--all', 'all letters of the workspace')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', REPLAY_HELP)
    .action(async ({ workspace: slugOrId, json, ...options }: ReplayOptions) => {
      const selection = selectionOf(options)
      if (typeof selection === 'string') return exit(EXIT.usage, selection)
      await withLetters(slugOrId, async (stores, { id: workspaceId, slug }) => {
        let replayed = 0
        const skipped: Skipped = {}
        let isRepeated = false
        let step: Step = { limit: LETTERS_PER_STEP }
        for (;;) {
          const done = await replayLetters(stores, workspaceId, selection, step, AbortSignal.timeout(STEP_TIMEOUT_MS))
          replayed += done.replayed
          addSkipped(skipped, done.skipped.filter(isCounted(done, isRepeated)))
          if (done.next === undefined) break
          step = { ...step, after: done.next.after }
          isRepeated = done.isBusy
          if (done.isBusy) await delay(BUSY_MS)
        }
        print(
          json
            ? JSON.stringify({ replayed, skipped })
            : `dead letters of ${slug}: ${replayed} replayed${andSkipped(skipped)}`,
        )
      })
    })
}

/**
 * Returns whether a letter counts as skipped. A letter after the position of the next step is met again. A step after a busy
 * one meets the letters that the busy one has replayed.
 */
function isCounted({ next }: ReplayStep, isRepeated: boolean): (letter: SkippedLetter) => boolean {
  return ({ key, reason }) => {
    if (isRepeated && (reason === 'replaying' || reason === 'replayed')) return false
    return next === undefined || (next.after !== undefined && compareKeys(key, next.after) <= 0)
  }
}

const PURGE_HELP = `
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
  const { print, exit } = context
  addFilterOptions(
    parent
      .command('purge')
      .description('delete dead letters for good')
      .requiredOption(...WORKSPACE_OPTION),
  )
    .option('--id <id...>', 'these letters')
    .option('--all', 'all letters of the workspace')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', PURGE_HELP)
    .action(async ({ workspace: slugOrId, json, ...options }: PurgeOptions) => {
      const selection = selectionOf(options)
      if (typeof selection === 'string') return exit(EXIT.usage, selection)
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
