import { type Command, Option } from 'commander'
import { PERMISSIONS, type Permission } from '../../schemas/records/directory.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { printable, rowOf } from '../terminal.ts'

const CODES = `
Exit codes:
  0  done
  1  the directory could not be used
  2  the arguments or the environment are wrong
  3  there is no such workspace, user or member`

const ADD_HELP = `
Permissions: ${PERMISSIONS.join(', ')}.
A member who is one already has from then on the permissions that are named, and no others.
${CODES}

Examples:
  $ npm run cli -- member add --workspace acme --user 'auth0|5f7c' --permission org:findings:read org:sessions:read
  $ npm run cli -- member add --workspace acme --user 'auth0|5f7c' --all`

const REMOVE_HELP = `
What the user has made stays, workspace keys too, but these give access to nothing as long as their maker is no member.
${CODES}

Example:
  $ npm run cli -- member remove --workspace acme --user 'auth0|5f7c'`

const LIST_HELP = `${CODES}

Example:
  $ npm run cli -- member list --workspace acme`

const WORKSPACE = ['--workspace <slug or id>', 'the workspace'] as const
const WIDTHS = [32]

interface Asked {
  readonly workspace: string
  readonly user: string
  readonly permission?: readonly Permission[]
  readonly all?: boolean
  readonly json?: boolean
}

/** `member add`, `member list` and `member remove`. */
export function addMembers(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('member').description('who may do what in a workspace')
  addAdd(command, context)
  addList(command, context)
  addRemove(command, context)
}

function addAdd(command: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit } = context
  command
    .command('add')
    .description('make a user a member, or change what a member may do')
    .requiredOption(...WORKSPACE)
    .requiredOption('--user <id>', 'the user')
    .addOption(
      new Option('--permission <permission...>', 'what the member may do').choices(PERMISSIONS).conflicts('all'),
    )
    .option('--all', 'every permission')
    .option('--json', 'print the member as JSON')
    .addHelpText('after', ADD_HELP)
    .action(async ({ workspace: name, user: userId, permission, all, json }: Asked) => {
      const permissions = all ? [...PERMISSIONS] : PERMISSIONS.filter(known => permission?.includes(known))
      if (permissions.length === 0) {
        printError('one of --permission and --all is needed')
        return exit(EXIT.usage)
      }
      await withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, name, context)
        if (workspace === undefined) return
        if ((await store.user(userId)) === undefined) {
          printError(`there is no user ${JSON.stringify(userId)}: make one with "user create"`)
          return exit(EXIT.notFound)
        }
        await store.putMember({ version: 1, workspaceId: workspace.id, userId, permissions })
        const told = `user ${JSON.stringify(userId)}: member of ${workspace.slug}, ${permissions.join(', ')}`
        print(json ? JSON.stringify({ workspaceId: workspace.id, userId, permissions }) : told)
      })
    })
}

function addList(command: Command, context: DirectoryCommandContext): void {
  const { print, withDirectory } = context
  command
    .command('list')
    .description('list the members of a workspace, by their ids')
    .requiredOption(...WORKSPACE)
    .option('--json', 'print each as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ workspace: name, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, name, context)
        if (workspace === undefined) return
        if (!json) print(rowOf(['USER', 'PERMISSIONS'], WIDTHS))
        for await (const { workspaceId, userId, permissions } of store.members(workspace.id)) {
          const cells = [userId, permissions.join(' ')]
          print(json ? JSON.stringify({ workspaceId, userId, permissions }) : rowOf(cells, WIDTHS))
        }
      }),
    )
}

function addRemove(command: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit } = context
  command
    .command('remove')
    .description('end a membership')
    .requiredOption(...WORKSPACE)
    .requiredOption('--user <id>', 'the user')
    .option('--json', 'print what was removed as JSON')
    .addHelpText('after', REMOVE_HELP)
    .action(({ workspace: name, user: userId, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, name, context)
        if (workspace === undefined) return
        if ((await store.removeMember(workspace.id, userId)) === 'absent') {
          printError(`${printable(JSON.stringify(userId))} is no member of ${workspace.slug}`)
          return exit(EXIT.notFound)
        }
        const told = `user ${JSON.stringify(userId)}: no member of ${workspace.slug} any more`
        print(json ? JSON.stringify({ workspaceId: workspace.id, userId }) : told)
      }),
    )
}
