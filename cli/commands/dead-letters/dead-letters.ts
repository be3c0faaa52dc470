import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { type Command, Option } from 'commander'
import { selectAttempts, selectLetters } from '../../../clickhouse/queries/letters/select-letters.ts'
import { LetterClaims } from '../../../letters/letter-claims.ts'
import { letterId, readLetterId } from '../../../letters/letter-id.ts'
import { openLetterBody, readLetterHead } from '../../../letters/read-letters.ts'
import { ReplayJobs } from '../../../letters/replay-jobs.ts'
import { isReplayable } from '../../../letters/replay-letters.ts'
import type { Workspace } from '../../../schemas/records/directory.ts'
import type { CommandOutput, StoresCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { findWorkspace, WORKSPACE_OPTION } from '../../find-workspace.ts'
import { limitSchema, parsedBy, rowOf } from '../../terminal.ts'
import { addPurge, addReplay } from './replay-and-purge.ts'
import {
  addFilterOptions,
  filterOf,
  type LetterStores,
  type SelectionOptions,
  STEP_TIMEOUT_MS,
  type WithLetters,
} from './selection.ts'

/** Adds `dead-letters list`, `show`, `replay` and `purge`. */
export function addDeadLetters(parent: Command, context: StoresCommandContext): void {
  const command = parent.command('dead-letters').description('the requests of a workspace that could not be stored')
  const withLetters = (slugOrId: string, run: (stores: LetterStores, workspace: Workspace) => Promise<void>) =>
    context.withStores(async ({ store, clickhouse, objects, withQueues, retentionDays }) => {
      const workspace = await findWorkspace(store, slugOrId, context)
      if (workspace === undefined) return
      await withQueues(async queues => {
        const jobs = new ReplayJobs(queues)
        const claims = new LetterClaims(queues, retentionDays)
        try {
          await run({ clickhouse, objects, claims, jobs, now: Date.now }, workspace)
        } finally {
          await jobs.close()
        }
      })
    })
  addList(command, context, withLetters)
  addShow(command, context, withLetters)
  addReplay(command, context, withLetters)
  addPurge(command, context, withLetters)
}

const LIST_HELP = `
The last request comes first. A letter is dead, replaying (it waits for a worker) or replayed (its request is stored).

${exitCodesHelp({ [EXIT.failed]: 'a store is unavailable', [EXIT.notFound]: 'the workspace does not exist' })}

Example:
  $ npm run cli -- dead-letters list --workspace acme --queue traces --from 2026-11-21T00:00:00Z`

const WIDTHS = [70, 10, 14, 25, 26, 10]

interface ListOptions extends SelectionOptions {
  readonly workspace: string
  readonly state?: 'dead' | 'replayed'
  readonly limit: number
  readonly json?: boolean
}

/** Adds `dead-letters list`. */
function addList(parent: Command, context: CommandOutput, withLetters: WithLetters): void {
  const { print, exit } = context
  addFilterOptions(
    parent
      .command('list')
      .description('list dead letters')
      .requiredOption(...WORKSPACE_OPTION),
  )
    .addOption(new Option('--state <state>', 'letters in this state').choices(['dead', 'replayed']))
    .option('--limit <count>', 'the maximum number of letters', parsedBy(limitSchema), 50)
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', LIST_HELP)
    .action(async ({ workspace: slugOrId, state, limit, json, ...options }: ListOptions) => {
      const conditions = filterOf(options)
      if (typeof conditions === 'string') return exit(EXIT.usage, conditions)
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

const SHOW_HELP = `
Prints the letter as JSON: its reason, the tables and records of its request that are stored, and every attempt. With
--body, the body is written to a file, byte for byte as it was sent.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the letter does not exist, or its bytes are gone' })}

Example:
  $ npm run cli -- dead-letters show --workspace acme --id dlt_… --body request.bin`

interface ShowOptions {
  readonly workspace: string
  readonly id: string
  readonly body?: string
}

/** Adds `dead-letters show`. */
function addShow(parent: Command, context: CommandOutput, withLetters: WithLetters): void {
  const { print, exit } = context
  parent
    .command('show')
    .description('show a dead letter with every attempt to store it')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--id <id>', 'the letter (dlt_…)')
    .option('--body <file>', 'write the body to this file')
    .addHelpText('after', SHOW_HELP)
    .action(({ workspace: slugOrId, id, body }: ShowOptions) =>
      withLetters(slugOrId, async ({ clickhouse, claims, objects }, { id: workspaceId, slug }) => {
        const key = readLetterId(id)
        const signal = AbortSignal.timeout(STEP_TIMEOUT_MS)
        const attempts = key ? await selectAttempts(clickhouse, workspaceId, [key], signal) : []
        const letter = attempts.at(-1)
        const [claim] = letter ? await claims.states(workspaceId, [letter]) : []
        // A letter that is being purged is gone for readers.
        if (letter === undefined || claim?.isPurged) {
          return exit(EXIT.notFound, `there is no dead letter ${JSON.stringify(id)} in ${slug}`)
        }
        const head = await readLetterHead(objects, letter)
        const { queue, surfaceId, sessionId, bodyBytes, storedTables, storedRecords, rejected, objectKey } = letter
        const described = {
          ...{ id, queue, surfaceId, sessionId, bodyBytes },
          receivedAt: new Date(letter.receivedAtMs).toISOString(),
          contentType: head?.contentType,
          contentEncoding: head?.contentEncoding,
          isReplayable: letter.outcome === 'dead' && head !== undefined && isReplayable(letter),
          ...{ storedTables, storedRecords, rejected, objectKey },
          isReplaying: letter.outcome === 'dead' && (claim?.attempt ?? 0) > letter.attempt,
          attempts: attempts.map(({ attempt, replayedAtMs, outcome, settledAtMs, reason, detail }) => ({
            replayedAt: attempt === 0 ? undefined : new Date(replayedAtMs).toISOString(),
            outcome,
            settledAt: new Date(settledAtMs).toISOString(),
            ...(outcome === 'dead' && { reason, detail }),
          })),
        }
        print(JSON.stringify(described, null, 2))
        if (body === undefined) return
        const bytes = head && (await openLetterBody(objects, letter))
        if (bytes === undefined) return exit(EXIT.notFound, `the bytes of ${id} are gone`)
        await pipeline(bytes, createWriteStream(body, { mode: 0o600 }))
      }),
    )
}
