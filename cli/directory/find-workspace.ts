import type { Workspace } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { CommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'

/** The workspace of this slug or id. Without one it says so, sets the exit code and answers undefined. */
export async function findWorkspace(
  store: Pick<Directory, 'workspaceById' | 'workspaceBySlug'>,
  name: string,
  { printError, exit }: Pick<CommandContext, 'printError' | 'exit'>,
): Promise<Workspace | undefined> {
  // Ids have an underscore, and slugs have none.
  const workspace = await (name.startsWith('ws_') ? store.workspaceById(name) : store.workspaceBySlug(name))
  if (workspace === undefined) {
    printError(`there is no workspace ${JSON.stringify(name)}`)
    exit(EXIT.notFound)
  }
  return workspace
}
