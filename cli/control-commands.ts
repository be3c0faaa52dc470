import type { Command } from 'commander'
import type { ControlCommandContext } from './command-context.ts'
import { addControl } from './control.ts'
import { addKeys } from './keys.ts'
import { addMembers } from './members.ts'
import { addSurfaces } from './surfaces.ts'
import { addToken } from './token.ts'
import { addUsers } from './users.ts'
import { addWorkspaces } from './workspaces.ts'

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
