import type { Command } from 'commander'
import { sessionIdSchema } from '../../../schemas/http/sessions/schemas.ts'
import type { StoresCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { findWorkspace, WORKSPACE_OPTION } from '../../find-workspace.ts'
import { type DeletedSession, deleteSession } from '../../sessions/delete-session.ts'

const HELP = `
Deletes the session's identities, heartbeats and replay (rows and objects), and the spans, log records and exceptions
with its id. The counters of its findings stay, and so do messages that were once the latest of a finding: they belong
to many sessions, and expire with their day. When the command ends, no read returns the rows any more. Their bytes
leave the disk with the next merges, or with their day at the latest. Data of the session that is still queued, or
arrives later, is stored: run the command again.

${exitCodesHelp({
  [EXIT.done]: 'nothing of the session is stored any more, or nothing was stored',
  [EXIT.failed]: 'a store is unavailable; what was deleted stays deleted, run the command again',
  [EXIT.notFound]: 'the workspace does not exist',
})}

Example:
  $ npm run cli -- sessions delete --workspace acme --session 0199d2c4-5f0a-7c3e-9a51-3f0c2f1d7b60`

interface SessionsDeleteOptions {
  readonly workspace: string
  readonly session: string
  readonly json?: boolean
}

/** Adds `sessions delete`, which serves a person's request for deletion. */
export function addSessionsDelete(parent: Command, context: StoresCommandContext): void {
  const { print, printError, withStores, exit } = context
  parent
    .command('delete')
    .description('delete all stored data of one session')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--session <id>', 'the id of the session, as its SDK has generated it')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, session: sessionId, json }: SessionsDeleteOptions) => {
      if (!sessionIdSchema.safeParse(sessionId).success) {
        printError('--session must have 1 to 200 characters')
        return exit(EXIT.usage)
      }
      await withStores(async ({ store, clickhouse, objects }) => {
        const workspace = await findWorkspace(store, slugOrId, context)
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
