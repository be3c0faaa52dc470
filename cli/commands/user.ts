import type { Command } from 'commander'
import { z } from 'zod'
import { type User, userIdSchema } from '../../schemas/records/directory.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { nameSchema, parsedBy, rowOf } from '../terminal.ts'

const CREATE_HELP = `
A user is whoever signs in with the identity provider: the id is what its tokens carry as "sub". What a user may do
where is said by "member add".

Exit codes:
  0   done
  1   the directory could not be used
  2   the arguments or the environment are wrong
  10  there is a user with this id

Example:
  $ npm run cli -- user create --id 'auth0|5f7c8ec7c33c6c004bbafe82' --email anna@example.com --name Anna`

const LIST_HELP = `
Example:
  $ npm run cli -- user list`

const ID_RULE = 'It has 1 to 200 characters, and no control characters.'
const idSchema = z.string().refine(text => userIdSchema.safeParse(text).success, ID_RULE)
const emailSchema = z.email('It is no email address.').max(320)
const WIDTHS = [32, 24, 24]

interface Asked {
  readonly id: string
  readonly email?: string
  readonly name?: string
  readonly json?: boolean
}

/** `user create` and `user list`. */
export function addUsers(parent: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit, now } = context
  const command = parent.command('user').description('the users of this installation')

  command
    .command('create')
    .description('make a user known')
    .requiredOption('--id <id>', 'the "sub" of the tokens of the identity provider', parsedBy(idSchema))
    .option('--email <address>', 'the address of the user', parsedBy(emailSchema))
    .option('--name <name>', 'what people call the user', parsedBy(nameSchema))
    .option('--json', 'print the user as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(async ({ id, email, name, json }: Asked) => {
      const createdAt = new Date(now()).toISOString()
      const user: User = { version: 1, id, email: email ?? null, name: name ?? null, createdAt }
      await withDirectory(async ({ store }) => {
        if ((await store.createUser(user)) === 'exists') {
          printError(`there is a user ${JSON.stringify(id)}`)
          return exit(EXIT.conflict)
        }
        print(json ? JSON.stringify(shown(user)) : `user ${JSON.stringify(id)}: made`)
      })
    })

  command
    .command('list')
    .description('list all users, by their ids')
    .option('--json', 'print each as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ json }: { json?: boolean }) =>
      withDirectory(async ({ store }) => {
        if (!json) print(rowOf(['ID', 'CREATED', 'EMAIL', 'NAME'], WIDTHS))
        for await (const user of store.users()) {
          const cells = [user.id, user.createdAt, user.email ?? '-', user.name ?? '-']
          print(json ? JSON.stringify(shown(user)) : rowOf(cells, WIDTHS))
        }
      }),
    )
}

function shown({ id, email, name, createdAt }: User) {
  return { id, email, name, createdAt }
}
