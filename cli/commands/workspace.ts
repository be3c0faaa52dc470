import type { Command } from 'commander'
import { z } from 'zod'
import { type Workspace, workspaceSchema } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { nameSchema, parsedBy, rowOf } from '../terminal.ts'

const CREATE_HELP = `
Exit codes:
  0   done: the workspace's id and slug are printed
  1   the directory could not be used
  2   the arguments or the environment are wrong
  10  another workspace has this slug

Example:
  $ npm run cli -- workspace create --slug acme --name 'Acme Corp.'`

const LIST_HELP = `
Examples:
  $ npm run cli -- workspace list
  $ npm run cli -- workspace list --json | jq -r .slug`

const SLUG_RULE = 'It has 1 to 63 of a-z, 0-9 and -, and does not begin with -.'
const slugSchema = z.string().refine(text => workspaceSchema.shape.slug.safeParse(text).success, SLUG_RULE)
const WIDTHS = [24, 24, 24]

/** `workspace create` and `workspace list`. */
export function addWorkspaces(parent: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit, now } = context
  const command = parent.command('workspace').description('the workspaces of this installation')

  command
    .command('create')
    .description('make a workspace')
    .requiredOption('--slug <slug>', 'its name in addresses and tokens', parsedBy(slugSchema))
    .requiredOption('--name <name>', 'what people call it', parsedBy(nameSchema))
    .option('--json', 'print the workspace as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(async ({ slug, name, json }: { slug: string; name: string; json?: boolean }) => {
      const createdAt = new Date(now()).toISOString()
      const workspace: Workspace = { version: 1, id: newId('ws'), slug, name, createdAt }
      await withDirectory(async ({ store }) => {
        if ((await store.putWorkspace(workspace)) === 'slug_taken') {
          printError(`another workspace has the slug ${JSON.stringify(slug)}`)
          return exit(EXIT.conflict)
        }
        print(json ? JSON.stringify(shown(workspace)) : `workspace ${slug}: made, ${workspace.id}`)
      })
    })

  command
    .command('list')
    .description('list all workspaces, by their ids')
    .option('--json', 'print each as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ json }: { json?: boolean }) =>
      withDirectory(async ({ store }) => {
        if (!json) print(rowOf(['ID', 'SLUG', 'CREATED', 'NAME'], WIDTHS))
        for await (const workspace of store.workspaces()) {
          const { id, slug, createdAt, name } = workspace
          print(json ? JSON.stringify(shown(workspace)) : rowOf([id, slug, createdAt, name], WIDTHS))
        }
      }),
    )
}

function shown({ id, slug, name, createdAt }: Workspace) {
  return { id, slug, name, createdAt }
}
