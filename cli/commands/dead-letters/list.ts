import { type Command, Option } from 'commander'
import { z } from 'zod'
import { selectLetters } from '../../../clickhouse/queries/letters/select-letters.ts'
import { letterId } from '../../../letters/letter-id.ts'
import type { CommandOutput } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION } from '../../find-workspace.ts'
import { parsedBy, rowOf } from '../../terminal.ts'
import { addFilterOptions, filterOf, type SelectionOptions } from './selection.ts'
import { STEP_TIMEOUT_MS, type WithLetters } from './stores.ts'

const HELP = `
The last request comes first. A letter is dead, replaying (it waits for a worker) or replayed (its request is stored).

${exitCodesHelp({ [EXIT.failed]: 'a store is unavailable', [EXIT.notFound]: 'the workspace does not exist' })}

Example:
  $ npm run cli -- dead-letters list --workspace acme --queue traces --from 2026-11-21T00:00:00Z`

const LIMIT_RULE = 'It must be a whole number from 1 to 10000.'
const limitSchema = z
  .string()
  .regex(/^\d{1,5}$/, LIMIT_RULE)
  .transform(Number)
  .refine(limit => limit >= 1 && limit <= 10_000, LIMIT_RULE)
const WIDTHS = [70, 10, 14, 25, 26, 10]

interface ListOptions extends SelectionOptions {
  readonly workspace: string
  readonly state?: 'dead' | 'replayed'
  readonly limit: number
  readonly json?: boolean
}

/** Adds `dead-letters list`. */
export function addList(parent: Command, context: CommandOutput, withLetters: WithLetters): void {
  const { print, printError, exit } = context
  addFilterOptions(
    parent
      .command('list')
      .description('list dead letters')
      .requiredOption(...WORKSPACE_OPTION),
  )
    .addOption(new Option('--state <state>', 'letters in this state').choices(['dead', 'replayed']))
    .option('--limit <count>', 'the maximum number of letters', parsedBy(limitSchema), 50)
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, state, limit, json, ...options }: ListOptions) => {
      const conditions = filterOf(options)
      if (typeof conditions === 'string') {
        printError(conditions)
        return exit(EXIT.usage)
      }
      await withLetters(slugOrId, async ({ clickhouse, claims }, { id: workspaceId }) => {
        const filter = { ...conditions, outcome: state && (state === 'replayed' ? 'stored' : 'dead') } as const
        const page = { workspaceId, filter, order: 'newest', limit } as const
        const letters = await selectLetters(clickhouse, page, AbortSignal.timeout(STEP_TIMEOUT_MS))
        const states = await claims.states(workspaceId, letters)
        if (!json) print(rowOf(['ID', 'STATE', 'QUEUE', 'REASON', 'ARRIVED', 'BYTES'], WIDTHS))
        for (const [i, letter] of letters.entries()) {
          const begun = states[i]?.attempt ?? 0
          const isReplaying = letter.outcome === 'dead' && begun > letter.attempt
          const entry = {
            id: letterId(letter),
            state: letter.outcome === 'stored' ? 'replayed' : isReplaying ? 'replaying' : 'dead',
            queue: letter.queue,
            surfaceId: letter.surfaceId,
            reason: letter.reason,
            receivedAt: new Date(letter.receivedAtMs).toISOString(),
            bodyBytes: letter.bodyBytes,
            replays: Math.max(letter.attempt, begun),
          }
          const { id, queue, reason, receivedAt, bodyBytes } = entry
          print(
            json
              ? JSON.stringify(entry)
              : rowOf([id, entry.state, queue, reason, receivedAt, String(bodyBytes)], WIDTHS),
          )
        }
      })
    })
}
