import { type Command, Option } from 'commander'
import { type Member, PERMISSIONS, type Permission } from '../../schemas/records/directory.ts'
import type { MemberDecision } from '../../shared/directory/members/member-changes.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { addWorkspaceList, WORKSPACE_OPTION, withWorkspace } from '../find-workspace.ts'
import { printable } from '../terminal.ts'

const ADD_HELP = `
Permissions: ${PERMISSIONS.join(', ')}.
If the user is already a member, the given permissions replace the present ones.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the user does not exist' })}

Examples:
  $ npm run cli -- member add --workspace acme --user 'auth0|5f7c' --permission org:findings:read org:sessions:read
  $ npm run cli -- member add --workspace acme --user 'auth0|5f7c' --all`

const REMOVE_HELP = `
The records that the user has created stay. API keys and secret keys of surfaces that the user has made are revoked; public
keys stay, because they are on live pages.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace does not exist, or the user is not a member of it' })}

Example:
  $ npm run cli -- member remove --workspace acme --user 'auth0|5f7c'`

interface MemberOptions {
  readonly workspace: string
  readonly user: string
  readonly permission?: readonly Permission[]
  readonly all?: boolean
  readonly json?: boolean
}

/** Adds `member add`, `member list` and `member remove`. */
export function addMembers(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('member').description('the members of a workspace and their permissions')
  addAdd(command, context)
  addWorkspaceList(command, context, {
    description: 'list the members of a workspace, sorted by user id',
    each: 'member',
    columns: { USER: 32, PERMISSIONS: 0 },
    entries: (store, workspaceId) => store.members(workspaceId),
    cells: ({ userId, permissions }) => [userId, permissions.join(' ')],
    shown: ({ workspaceId, userId, permissions }) => ({ workspaceId, userId, permissions }),
  })
  addRemove(command, context)
}

function addAdd(command: Command, context: DirectoryCommandContext): void {
  const { print, exit } = context
  command
    .command('add')
    .description('make a user a member, or change the permissions of a member')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--user <id>', 'the user')
    .addOption(
      new Option('--permission <permission...>', 'permissions of the member').choices(PERMISSIONS).conflicts('all'),
    )
    .option('--all', 'every permission')
    .option('--json', 'print the member as JSON')
    .addHelpText('after', ADD_HELP)
    .action(async ({ workspace: slugOrId, user: userId, permission, all, json }: MemberOptions) => {
      const permissions = all ? [...PERMISSIONS] : PERMISSIONS.filter(known => permission?.includes(known))
      if (permissions.length === 0) return exit(EXIT.usage, 'pass --permission or --all')
      await withWorkspace(context, slugOrId, async ({ id: workspaceId, slug }, store) => {
        if ((await store.user(userId)) === undefined) {
          return exit(EXIT.notFound, `there is no user ${JSON.stringify(userId)}: create it with "user create"`)
        }
        const change = { action: 'member.changed', subject: userId, permissions } as const
        const author = { by: null, now: context.now() }
        const decide = (before: Member | undefined): MemberDecision<never> => ({
          to: { ...before, version: 1, workspaceId, userId, permissions },
          change,
          // No key of an earlier membership works again.
          ...(before === undefined && { keys: { are: 'revoked' } }),
        })
        await store.changeMember({ workspaceId, userId }, decide, author)
        const text = `user ${JSON.stringify(userId)}: member of ${slug}, ${permissions.join(', ')}`
        print(json ? JSON.stringify({ workspaceId, userId, permissions }) : text)
      })
    })
}

function addRemove(command: Command, context: DirectoryCommandContext): void {
  const { print, exit } = context
  command
    .command('remove')
    .description('remove a user from a workspace')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--user <id>', 'the user')
    .option('--json', 'print the removed member as JSON')
    .addHelpText('after', REMOVE_HELP)
    .action(({ workspace: slugOrId, user: userId, json }: MemberOptions) =>
      withWorkspace(context, slugOrId, async ({ id: workspaceId, slug }, store) => {
        const decide = (before: Member | undefined): MemberDecision<'absent'> =>
          before === undefined
            ? { refused: 'absent' }
            : { to: undefined, change: { action: 'member.removed', subject: userId }, keys: { are: 'revoked' } }
        const author = { by: null, now: context.now() }
        const outcome = await store.changeMember({ workspaceId, userId }, decide, author)
        if (outcome === 'absent') {
          return exit(EXIT.notFound, `${printable(JSON.stringify(userId))} is not a member of ${slug}`)
        }
        const text = `user ${JSON.stringify(userId)}: no longer a member of ${slug}`
        print(json ? JSON.stringify({ workspaceId, userId }) : text)
      }),
    )
}
