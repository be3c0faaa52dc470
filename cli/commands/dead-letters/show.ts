import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { selectAttempts } from '../../../clickhouse/queries/letters/select-letters.ts'
import { readLetterId } from '../../../letters/letter-id.ts'
import { openLetterBody, readLetterHead } from '../../../letters/read-letters.ts'
import { isReplayable } from '../../../letters/replay-letters.ts'
import type { CommandOutput } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION } from '../../find-workspace.ts'
import { STEP_TIMEOUT_MS, type WithLetters } from './stores.ts'

const HELP = `
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
export function addShow(parent: Command, context: CommandOutput, withLetters: WithLetters): void {
  const { print, printError, exit } = context
  parent
    .command('show')
    .description('show a dead letter with every attempt to store it')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--id <id>', 'the letter (dlt_…)')
    .option('--body <file>', 'write the body to this file')
    .addHelpText('after', HELP)
    .action(({ workspace: slugOrId, id, body }: ShowOptions) =>
      withLetters(slugOrId, async ({ clickhouse, claims, objects }, { id: workspaceId, slug }) => {
        const key = readLetterId(id)
        const signal = AbortSignal.timeout(STEP_TIMEOUT_MS)
        const attempts = key ? await selectAttempts(clickhouse, workspaceId, [key], signal) : []
        const letter = attempts.at(-1)
        const [claim] = letter ? await claims.states(workspaceId, [letter]) : []
        // A letter that is being purged is gone for readers.
        if (letter === undefined || claim?.isPurged) {
          printError(`there is no dead letter ${JSON.stringify(id)} in ${slug}`)
          return exit(EXIT.notFound)
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
        if (bytes === undefined) {
          printError(`the bytes of ${id} are gone`)
          return exit(EXIT.notFound)
        }
        await pipeline(bytes, createWriteStream(body, { mode: 0o600 }))
      }),
    )
}
