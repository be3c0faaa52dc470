import type { Command } from 'commander'
import type { ControlCommandContext } from '../command-context.ts'
import { addControl } from './directory.ts'
import { addKeys } from './key.ts'
import { addMembers } from './member.ts'
import { addSurfaces } from './surface.ts'
import { addToken } from './token.ts'
import { addUsers } from './user.ts'
import { addWorkspaces } from './workspace.ts'

/** The commands that need the control store alone. */
export function addControlCommands(program: Command, context: ControlCommandContext): void {
  addWorkspaces(program, context)
  addUsers(program, context)
  addMembers(program, context)
  addSurfaces(program, context)
  addKeys(program, context)
  addToken(program, context)
  addControl(program, context)
}
