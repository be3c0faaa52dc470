import type { Command } from 'commander'
import { z } from 'zod'
import { emailSchema } from '../../schemas/http/fields.ts'
import type { User } from '../../schemas/records/directory.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { type Listing, nameSchema, parsedBy, printList, userIdOptionSchema } from '../terminal.ts'

const CREATE_HELP = `
A user is a person who signs in with the identity provider. The id is the "sub" of that person's tokens. The permissions
of a user in a workspace are set by "member add".

${exitCodesHelp({ [EXIT.conflict]: 'a user with this id exists' })}

Example:
  $ npm run cli -- user create --id 'auth0|5f7c8ec7c33c6c004bbafe82' --email anna@example.com --name Anna`

const LIST_HELP = `
${exitCodesHelp()}

Example:
  $ npm run cli -- user list`

const addressSchema = z
  .string()
  .refine(address => emailSchema.safeParse(address).success, 'It is not an email address.')
const LISTING: Listing<User> = {
  columns: { ID: 32, CREATED: 24, EMAIL: 24, NAME: 0 },
  cells: ({ id, createdAt, email, name }) => [id, createdAt, email ?? '-', name ?? '-'],
  shown,
}

interface CreateOptions {
  readonly id: string
  readonly email?: string
  readonly name?: string
  readonly json?: boolean
}

/** Adds `user create` and `user list`. */
export function addUsers(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('user').description('the users of this installation')
  addCreate(command, context)
  addList(command, context)
}

function addCreate(command: Command, { print, withDirectory, exit, now }: DirectoryCommandContext): void {
  command
    .command('create')
    .description('create a user')
    .requiredOption('--id <id>', 'the "sub" in the tokens of the identity provider', parsedBy(userIdOptionSchema))
    .option('--email <address>', 'the email address of the user', parsedBy(addressSchema))
    .option('--name <name>', 'the display name of the user', parsedBy(nameSchema))
    .option('--json', 'print the user as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(async ({ id, email, name, json }: CreateOptions) => {
      const createdAt = new Date(now()).toISOString()
      const user: User = { version: 1, id, email: email ?? null, name: name ?? null, createdAt }
      await withDirectory(async ({ store }) => {
        if ((await store.createUser(user)) === 'exists') {
          return exit(EXIT.conflict, `a user with the id ${JSON.stringify(id)} exists`)
        }
        print(json ? JSON.stringify(shown(user)) : `user ${JSON.stringify(id)}: created`)
      })
    })
}

function addList(command: Command, { print, withDirectory }: DirectoryCommandContext): void {
  command
    .command('list')
    .description('list all users, sorted by id')
    .option('--json', 'print each user as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ json }: { json?: boolean }) =>
      withDirectory(({ store }) => printList({ print, json }, LISTING, store.users())),
    )
}

function shown({ id, email, name, createdAt }: User) {
  return { id, email, name, createdAt }
}
