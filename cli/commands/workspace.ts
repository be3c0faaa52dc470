import { type Command, Option } from 'commander'
import { z } from 'zod'
import { type Workspace, workspaceSchema } from '../../schemas/records/directory.ts'
import { DEFAULT_SCRUBBING, VALUE_KINDS, type ValueKind } from '../../schemas/records/scrubbing.ts'
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
  $ npm run cli -- workspace create --slug acme --name 'Acme Corp.' --scrub card_number jwt url_secret email

Passwords, tokens and API keys are masked by the names of their attributes in every workspace. With --scrub, what looks
like a secret is masked in every text as well. "penstock scrubbing" changes the rules later.`

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
    .addOption(new Option('--scrub <kind...>', 'kinds of values that are masked in its telemetry').choices(VALUE_KINDS))
    .option('--json', 'print the workspace as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(async ({ slug, name, scrub, json }: CreateOptions) => {
      const createdAt = new Date(now()).toISOString()
      const workspace: Workspace = { version: 1, id: newId('ws'), slug, name, createdAt }
      await withDirectory(async ({ store }) => {
        if ((await store.putWorkspace(workspace)) === 'slug_taken') {
          return exit(EXIT.conflict, `another workspace has the slug ${JSON.stringify(slug)}`)
        }
        if (scrub !== undefined) {
          const rules = [...DEFAULT_SCRUBBING, { name: 'values', values: [...new Set(scrub)], action: 'mask' as const }]
          await store.replaceScrubbing({ workspaceId: workspace.id, revision: 0, rules }, { by: null, now: now() })
        }
        if (json) return print(JSON.stringify(shown(workspace)))
        print(`workspace ${slug}: created, ${workspace.id}`)
        print(
          scrub === undefined
            ? 'card numbers, tokens, e-mail addresses and secrets in URLs are stored as they are sent: "penstock scrubbing"'
            : `masked in every text: ${scrub.join(', ')}`,
        )
      })
    })
}

/** Options of `workspace create`. */
interface CreateOptions {
  readonly slug: string
  readonly name: string
  readonly scrub?: readonly ValueKind[]
  readonly json?: boolean
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
