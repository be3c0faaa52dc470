import type { Command } from 'commander'
import type { DirectoryCommandContext } from '../command-context.ts'
import { addDirectory } from './directory.ts'
import { addKeys } from './key.ts'
import { addMembers } from './member.ts'
import { addSurfaces } from './surface.ts'
import { addToken } from './token.ts'
import { addUsers } from './user.ts'
import { addWorkspaces } from './workspace.ts'

/** The commands that need the directory alone. */
export function addDirectoryCommands(program: Command, context: DirectoryCommandContext): void {
  addWorkspaces(program, context)
  addUsers(program, context)
  addMembers(program, context)
  addSurfaces(program, context)
  addKeys(program, context)
  addToken(program, context)
  addDirectory(program, context)
}
