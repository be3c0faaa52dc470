import type { Command } from 'commander'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type CountedDeletion, deleteCountedRows } from '../../clickhouse/queries/retention/delete-counted-rows.ts'
import { countSessionRows } from '../../clickhouse/queries/sessions/count-session-rows.ts'
import {
  OF_SESSION,
  SESSION_TABLES,
  type SessionKey,
  type SessionTable,
} from '../../clickhouse/queries/sessions/session-key.ts'
import { SESSION_ID_MAX_CHARACTERS } from '../../schemas/http/fields.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import { replayPrefix } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { StoresCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { findWorkspace, WORKSPACE_OPTION } from '../find-workspace.ts'
import { counted, nounFor } from '../terminal.ts'

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
  const { print, withStores, exit } = context
  parent
    .command('delete')
    .description('delete all stored data of one session')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--session <id>', 'the id of the session, as its SDK has generated it')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async ({ workspace: slugOrId, session: sessionId, json }: SessionsDeleteOptions) => {
      if (!sessionIdSchema.safeParse(sessionId).success) {
        return exit(EXIT.usage, `--session must have 1 to ${SESSION_ID_MAX_CHARACTERS} characters`)
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
    ...tables.map(([table, count]) => `  ${String(count).padStart(10)}  ${nounFor(count, 'row')} of ${table}`),
    `  ${String(objects).padStart(10)}  ${nounFor(objects, 'object')}, ${counted(objectBytes, 'byte')}`,
  ].join('\n')
}

/** Dependencies of the deletion of a session. */
interface DeleteSessionDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'list' | 'deleteMany'>
  /** All present and former surfaces in the directory. Rows of the session may name more. */
  readonly surfaceIds: readonly string[]
}

/** Counts of the rows and objects that were deleted. */
interface DeletedSession {
  /** Number of rows by table. */
  readonly rows: Readonly<Record<string, number>>
  readonly objects: number
  readonly objectBytes: number
}

const COUNT_TIMEOUT_MS = 120_000
const DELETE_TIMEOUT_MS = 590_000

/**
 * Deletes the stored data of a session. Its replay objects are deleted before its rows, so that after an interruption
 * the next call still finds the surfaces in the rows. Calling it again is safe. Aggregates of findings stay, because
 * they belong to many sessions. Throws the errors of the stores.
 */
async function deleteSession(deps: DeleteSessionDeps, key: SessionKey): Promise<DeletedSession> {
  const { clickhouse } = deps
  const found = await Promise.all(
    SESSION_TABLES.map(async table => {
      const { rows, surfaceIds } = await countSessionRows(clickhouse, table, key, AbortSignal.timeout(COUNT_TIMEOUT_MS))
      return { table, rows, surfaceIds }
    }),
  )
  const surfaceIds = new Set([...deps.surfaceIds, ...found.flatMap(({ surfaceIds }) => surfaceIds)])
  let objects = 0
  let objectBytes = 0
  for (const surfaceId of surfaceIds) {
    for await (const page of deps.objects.list(replayPrefix({ ...key, surfaceId }))) {
      await deps.objects.deleteMany(page.map(object => object.key))
      objects += page.length
      objectBytes += page.reduce((sum, { size }) => sum + size, 0)
    }
  }
  for (const { table, rows } of found) {
    if (rows > 0) await deleteCountedRows(clickhouse, deletionOf(table, key), AbortSignal.timeout(DELETE_TIMEOUT_MS))
  }
  return { rows: Object.fromEntries(found.map(({ table, rows }) => [table.table, rows])), objects, objectBytes }
}

function deletionOf({ table, isSource }: SessionTable, key: SessionKey): CountedDeletion {
  const id = `session ${key.workspaceId} ${key.sessionId}`
  return { table, where: OF_SESSION, params: { ...key }, isSource, reason: 'erased', id }
}
