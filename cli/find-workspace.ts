import type { Workspace } from '../schemas/records/directory.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { CommandOutput, DirectoryCommandContext } from './command-context.ts'
import { EXIT } from './exit-codes.ts'

/** Flags and description of the option that names the workspace of a command. */
export const WORKSPACE_OPTION = ['--workspace <slug or id>', 'the workspace'] as const

/** Returns the workspace with this slug or id. Otherwise prints an error, sets the exit code and returns undefined. */
export async function findWorkspace(
  store: Pick<Directory, 'workspaceById' | 'workspaceBySlug'>,
  slugOrId: string,
  { printError, exit }: Pick<CommandOutput, 'printError' | 'exit'>,
): Promise<Workspace | undefined> {
  // An id contains an underscore; a slug cannot.
  const isId = slugOrId.startsWith('ws_')
  const workspace = await (isId ? store.workspaceById(slugOrId) : store.workspaceBySlug(slugOrId))
  if (workspace === undefined) {
    printError(`there is no workspace ${JSON.stringify(slugOrId)}`)
    exit(EXIT.notFound)
  }
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
