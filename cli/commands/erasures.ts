import { type Command, Option } from 'commander'
import { SESSION_ID_MAX_CHARACTERS } from '../../schemas/http/fields.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import { STAYING, STAYING_KINDS } from '../../schemas/records/erased-places.ts'
import type { Erasure, ErasureSubject } from '../../schemas/records/erasure.ts'
import { ACTIVE_ERASURES_MAX } from '../../shared/directory/erasures.ts'
import { walkNewest } from '../../shared/directory/sorted-index.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { addWorkspaceList, WORKSPACE_OPTION, withWorkspace } from '../find-workspace.ts'
import { counted, nounFor } from '../terminal.ts'

const CREATE_HELP = `
Erases everything of a person: of all sessions that were ever identified with the identifier, or of one session. The workers
delete what is stored, wait until everything that was accepted before is stored too, and delete again. No read finds anything
then. The bytes of rows leave the disk in the night, from 02:00 UTC (waiting_for_rewrite). "show" prints how far it is and, at
the end, the receipt with the number of rows by table. The identifier is kept only until everything is deleted.

${exitCodesHelp({
  [EXIT.notFound]: 'the workspace does not exist',
  [EXIT.conflict]: `${ACTIVE_ERASURES_MAX} erasures of the workspace are deleting, which is the maximum`,
})}

Examples:
  $ npm run cli -- erasures create --workspace acme --identifier user-4711
  $ npm run cli -- erasures create --workspace acme --session 0199d2c4-5f0a-7c3e-9a51-3f0c2f1d7b60`

const SHOW_HELP = `
${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the erasure does not exist' })}

Example:
  $ npm run cli -- erasures show --workspace acme --erasure ers_5d0c4e9b7a8f61203344`

interface ErasuresOptions {
  readonly workspace: string
  readonly identifier?: string
  readonly source?: string
  readonly session?: string
  readonly erasure: string
  readonly json?: boolean
}

/** Adds `erasures create`, `erasures show` and `erasures list`. */
export function addErasures(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('erasures').description('the erasure of persons from a workspace')
  command
    .command('create')
    .description('erase everything of a user identifier, or of a session')
    .requiredOption(...WORKSPACE_OPTION)
    .addOption(new Option('--identifier <text>', 'the identifier of the user').conflicts('session'))
    .option('--source <type>', 'the type of the source of the identifier; without it, every source')
    .addOption(new Option('--session <id>', 'a single session').conflicts('source'))
    .option('--json', 'print the erasure as JSON')
    .addHelpText('after', CREATE_HELP)
    .action((options: ErasuresOptions) => create(options, context))
  command
    .command('show')
    .description('show how far an erasure is, and what it has removed')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--erasure <id>', 'the erasure (ers_…)')
    .option('--json', 'print the erasure as JSON')
    .addHelpText('after', SHOW_HELP)
    .action(({ workspace: slugOrId, erasure: id, json }: ErasuresOptions) =>
      withWorkspace(context, slugOrId, async (workspace, store) => {
        const erasure = await store.erasure(workspace.id, id)
        if (erasure === undefined) {
          return context.exit(EXIT.notFound, `there is no erasure ${JSON.stringify(id)} of ${workspace.slug}`)
        }
        context.print(json ? JSON.stringify(shown(erasure)) : describe(erasure))
      }),
    )
  addWorkspaceList(command, context, {
    description: 'list the erasures of a workspace, newest first',
    each: 'erasure',
    columns: { ID: 26, STATE: 16, CREATED: 26, ROWS: 10 },
    entries: (store, workspaceId) => walkNewest(page => store.erasures(workspaceId, page)),
    cells: ({ id, state, createdAt, rows }) => [id, state, createdAt, String(totalOf(rows))],
    shown,
  })
}

async function create(options: ErasuresOptions, context: DirectoryCommandContext): Promise<void> {
  const { print, exit, now } = context
  const subject = subjectOf(options)
  if (subject === undefined)
    return exit(EXIT.usage, `pass --identifier, or --session with 1 to ${SESSION_ID_MAX_CHARACTERS} characters`)
  await withWorkspace(context, options.workspace, async ({ id: workspaceId, slug }, store) => {
    const erasure = await store.createErasure({
      workspaceId,
      subject,
      now: now(),
      author: { by: null, now: now() },
    })
    if (erasure === 'too_many_waiting') {
      return exit(EXIT.conflict, `too many erasures of ${slug} wait for the night: run the command again tomorrow`)
    }
    if (erasure === 'too_many_erasures') {
      return exit(
        EXIT.conflict,
        `${slug} has ${ACTIVE_ERASURES_MAX} erasures that are deleting: run the command again when one has deleted everything`,
      )
    }
    print(options.json ? JSON.stringify(shown(erasure)) : `erasure ${erasure.id} of ${slug}: ${erasure.state}`)
  })
}

function subjectOf({ identifier, source, session }: ErasuresOptions): ErasureSubject | undefined {
  if (identifier) return { kind: 'identifier', identifier, ...(source !== undefined && { sourceType: source }) }
  return sessionIdSchema.safeParse(session).success ? { kind: 'session', sessionId: session ?? '' } : undefined
}

function totalOf(rows: Erasure['rows']): number {
  return Object.values(rows).reduce((sum, count) => sum + count, 0)
}

/** Returns an erasure without its subject, which must not be in an output that is kept. */
function shown(erasure: Erasure) {
  const { subject: _, version: __, counted: ___, position: ____, settledAfterMs: _____, ...rest } = erasure
  return rest
}

function describe(erasure: Erasure): string {
  const { id, state, failure, sessions, rows, comments, objects, objectBytes, completedAt } = erasure
  const tables = Object.entries(rows).map(
    ([table, count]) => `  ${String(count).padStart(10)}  ${nounFor(count, 'row')} of ${table}`,
  )
  return [
    `erasure ${id}: ${state}${failure === null ? '' : `, ${failure}`}${completedAt === null ? '' : ` ${completedAt}`}`,
    `  ${String(sessions).padStart(10)}  ${nounFor(sessions, 'session')}`,
    ...tables,
    `  ${String(comments).padStart(10)}  ${nounFor(comments, 'comment')}`,
    `  ${String(objects).padStart(10)}  ${nounFor(objects, 'object')}, ${counted(objectBytes, 'byte')}`,
    'These stay:',
    ...STAYING_KINDS.map(what => `  ${STAYING[what].description}`),
  ].join('\n')
}
