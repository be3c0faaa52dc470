import type { Command } from 'commander'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { StoresCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { type DeletedSession, deleteSession } from '../sessions/delete-session.ts'

interface Asked {
  readonly workspace: string
  readonly session: string
  readonly json?: boolean
}

const HELP = `
Deletes the session's identities, heartbeats and replay (rows and objects), and the spans, log records and exceptions
that carry its id. Counters of its findings stay, and messages that were a finding's latest at some time: they are of
many sessions, and go with their day. No read finds the rows once the command has ended; their bytes leave the disk with
the next merges, and with their day at the latest.
What of the session is still queued or arrives later is stored: run the command again.

Exit codes:
  0  nothing of the session is stored any more, or nothing was
  1  a store could not be used; what was deleted stays deleted, run the command again
  2  the arguments or the environment are wrong
  3  there is no such workspace`

/** `sessions delete`: what a person may ask for. */
export function addSessionsDelete(
  parent: Command,
  { print, printError, withStores, exit }: StoresCommandContext,
): void {
  parent
    .command('delete')
    .description('delete everything that is stored of one session')
    .requiredOption('--workspace <slug or id>', 'the workspace that the session belongs to')
    .requiredOption('--session <id>', 'the id of the session, as its SDK made it')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async ({ workspace: name, session: sessionId, json }: Asked) => {
      if (!sessionIdSchema.safeParse(sessionId).success) {
        printError('--session must have 1 to 200 characters')
        return exit(EXIT.usage)
      }
      await withStores(async ({ store, clickhouse, objects }) => {
        const workspace = await findWorkspace(store, name, { printError, exit })
        if (workspace === undefined) return
        const surfaceIds = await store.surfaceIds(workspace.id)
        const key = { workspaceId: workspace.id, sessionId }
        const deleted = await deleteSession({ clickhouse, objects, surfaceIds }, key)
        print(json ? JSON.stringify({ ...key, ...deleted }) : describe(sessionId, workspace.slug, deleted))
      })
    })
}

function describe(sessionId: string, slug: string, { rows, objects, objectBytes }: DeletedSession): string {
  const session = `session ${JSON.stringify(sessionId)} of ${slug}`
  const tables = Object.entries(rows).filter(([, count]) => count > 0)
  if (tables.length === 0 && objects === 0) return `${session}: nothing was stored`
  return [
    `${session}: deleted`,
    ...tables.map(([table, count]) => `  ${String(count).padStart(10)}  rows of ${table}`),
    `  ${String(objects).padStart(10)}  objects, ${objectBytes} bytes`,
  ].join('\n')
}
