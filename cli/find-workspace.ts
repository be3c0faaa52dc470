import type { Command } from 'commander'
import type { Workspace } from '../schemas/records/directory.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { CommandOutput, DirectoryCommandContext } from './command-context.ts'
import { EXIT, exitCodesHelp } from './exit-codes.ts'
import { type Listing, printList } from './terminal.ts'

/** Flags and description of the option that names the workspace of a command. */
export const WORKSPACE_OPTION = ['--workspace <slug or id>', 'the workspace'] as const

/** Returns the workspace with this slug or id. Otherwise prints an error, sets the exit code and returns undefined. */
export async function findWorkspace(
  store: Pick<Directory, 'workspaceById' | 'workspaceBySlug'>,
  slugOrId: string,
  { exit }: Pick<CommandOutput, 'exit'>,
): Promise<Workspace | undefined> {
  // An id contains an underscore; a slug cannot.
  const isId = slugOrId.startsWith('ws_')
  const workspace = await (isId ? store.workspaceById(slugOrId) : store.workspaceBySlug(slugOrId))
  if (workspace === undefined) exit(EXIT.notFound, `there is no workspace ${JSON.stringify(slugOrId)}`)
  return workspace
}

/** Runs a command on one workspace of the directory. If the workspace does not exist, only the error is printed. */
export function withWorkspace(
  context: DirectoryCommandContext,
  slugOrId: string,
  run: (workspace: Workspace, store: Directory) => Promise<void>,
): Promise<void> {
  return context.withDirectory(async ({ store }) => {
    const workspace = await findWorkspace(store, slugOrId, context)
    if (workspace !== undefined) await run(workspace, store)
  })
}

/** A list of what a workspace has. */
interface WorkspaceListing<T> extends Listing<T> {
  readonly description: string
  /** Name of an entry. */
  readonly each: string
  readonly entries: (store: Directory, workspaceId: string) => AsyncIterable<T>
}

/** Adds `list` to the commands of a resource. */
export function addWorkspaceList<T>(
  command: Command,
  context: DirectoryCommandContext,
  { description, each, entries, ...listing }: WorkspaceListing<T>,
): void {
  command
    .command('list')
    .description(description)
    .requiredOption(...WORKSPACE_OPTION)
    .option('--json', `print each ${each} as a line of JSON`)
    .addHelpText(
      'after',
      `
${exitCodesHelp({ [EXIT.notFound]: 'the workspace does not exist' })}

Example:
  $ npm run cli -- ${command.name()} list --workspace acme`,
    )
    .action(({ workspace: slugOrId, json }: { workspace: string; json?: boolean }) =>
      withWorkspace(context, slugOrId, ({ id }, store) =>
        printList({ print: context.print, json }, listing, entries(store, id)),
      ),
    )
}
