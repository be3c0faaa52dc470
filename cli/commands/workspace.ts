import type { Command } from 'commander'
import { z } from 'zod'
import { type Workspace, workspaceSchema } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { type Listing, nameSchema, parsedBy, printList } from '../terminal.ts'

const CREATE_HELP = `
${exitCodesHelp({
  [EXIT.done]: 'done: the id and the slug of the workspace are printed',
  [EXIT.conflict]: 'another workspace has this slug',
})}

Example:
  $ npm run cli -- workspace create --slug acme --name 'Acme Corp.'`

const LIST_HELP = `
${exitCodesHelp()}

Examples:
  $ npm run cli -- workspace list
  $ npm run cli -- workspace list --json | jq -r .slug`

const SLUG_RULE = 'It must have 1 to 63 of the characters a-z, 0-9 and -, and must not start with -.'
const slugSchema = z.string().refine(text => workspaceSchema.shape.slug.safeParse(text).success, SLUG_RULE)
const LISTING: Listing<Workspace> = {
  columns: { ID: 24, SLUG: 24, CREATED: 24, NAME: 0 },
  cells: ({ id, slug, createdAt, name }) => [id, slug, createdAt, name],
  shown,
}

/** Adds `workspace create` and `workspace list`. */
export function addWorkspaces(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('workspace').description('the workspaces of this installation')
  addCreate(command, context)
  addList(command, context)
}

function addCreate(command: Command, { print, withDirectory, exit, now }: DirectoryCommandContext): void {
  command
    .command('create')
    .description('create a workspace')
    .requiredOption('--slug <slug>', 'its name in URLs and tokens', parsedBy(slugSchema))
    .requiredOption('--name <name>', 'its display name', parsedBy(nameSchema))
    .option('--json', 'print the workspace as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(async ({ slug, name, json }: { slug: string; name: string; json?: boolean }) => {
      const createdAt = new Date(now()).toISOString()
      const workspace: Workspace = { version: 1, id: newId('ws'), slug, name, createdAt }
      await withDirectory(async ({ store }) => {
        if ((await store.putWorkspace(workspace)) === 'slug_taken') {
          return exit(EXIT.conflict, `another workspace has the slug ${JSON.stringify(slug)}`)
        }
        print(json ? JSON.stringify(shown(workspace)) : `workspace ${slug}: created, ${workspace.id}`)
      })
    })
}

function addList(command: Command, { print, withDirectory }: DirectoryCommandContext): void {
  command
    .command('list')
    .description('list all workspaces, sorted by id')
    .option('--json', 'print each workspace as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ json }: { json?: boolean }) =>
      withDirectory(({ store }) => printList({ print, json }, LISTING, store.workspaces())),
    )
}

function shown({ id, slug, name, createdAt }: Workspace) {
  return { id, slug, name, createdAt }
}
