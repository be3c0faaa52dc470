import type { Command } from 'commander'
import type { Surface } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import { SURFACES_MAX } from '../../shared/directory/surfaces.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { walkNewest } from '../directory/walk-newest.ts'
import { EXIT } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { nameSchema, parsedBy, rowOf } from '../terminal.ts'

const CODES = `
Exit codes:
  0  done
  1  the directory could not be used
  2  the arguments or the environment are wrong
  3  there is no such workspace or surface
 10  the workspace has too many surfaces`

const CREATE_HELP = `
A surface is an application: a web site, a server. Its keys are made by "key create".
${CODES}

Example:
  $ npm run cli -- surface create --workspace acme --name 'Web shop'`

const LIST_HELP = `${CODES}

Example:
  $ npm run cli -- surface list --workspace acme`

const DELETE_HELP = `
Revokes all keys of the surface: within a second nothing that carries one of them is accepted any more. What was stored
of its telemetry stays until its time is over. A deleted surface does not come back.
${CODES}

Example:
  $ npm run cli -- surface delete --workspace acme --surface srf_0f3a6c1d2b4e5f607182`

const WORKSPACE = ['--workspace <slug or id>', 'the workspace'] as const
const WIDTHS = [24, 24]

interface Asked {
  readonly workspace: string
  readonly surface: string
  readonly name: string
  readonly json?: boolean
}

/** `surface create`, `surface list` and `surface delete`. */
export function addSurfaces(parent: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit, now } = context
  const command = parent.command('surface').description('the applications of a workspace')

  command
    .command('create')
    .description('make a surface')
    .requiredOption(...WORKSPACE)
    .requiredOption('--name <name>', 'what people call it', parsedBy(nameSchema))
    .option('--json', 'print the surface as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(({ workspace: slugOrId, name, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, slugOrId, context)
        if (workspace === undefined) return
        const createdAt = new Date(now()).toISOString()
        const surface: Surface = { version: 1, id: newId('srf'), workspaceId: workspace.id, name, createdAt }
        if ((await store.createSurface(surface)) === 'too_many_surfaces') {
          printError(`${workspace.slug} has ${SURFACES_MAX} surfaces, deleted ones too, and may have no more`)
          return exit(EXIT.conflict)
        }
        print(json ? JSON.stringify(shown(surface)) : `surface ${surface.id} of ${workspace.slug}: made`)
      }),
    )

  command
    .command('list')
    .description('list the surfaces of a workspace, the newest first')
    .requiredOption(...WORKSPACE)
    .option('--json', 'print each as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ workspace: slugOrId, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, slugOrId, context)
        if (workspace === undefined) return
        if (!json) print(rowOf(['ID', 'CREATED', 'NAME'], WIDTHS))
        for await (const surface of walkNewest(page => store.surfaces(workspace.id, page))) {
          const cells = [surface.id, surface.createdAt, surface.name]
          print(json ? JSON.stringify(shown(surface)) : rowOf(cells, WIDTHS))
        }
      }),
    )

  command
    .command('delete')
    .description('remove a surface and revoke its keys')
    .requiredOption(...WORKSPACE)
    .requiredOption('--surface <id>', 'the surface')
    .option('--json', 'print what was removed as JSON')
    .addHelpText('after', DELETE_HELP)
    .action(({ workspace: slugOrId, surface: id, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, slugOrId, context)
        if (workspace === undefined) return
        if ((await store.deleteSurface(workspace.id, id, now())) === 'absent') {
          printError(`there is no surface ${JSON.stringify(id)} in ${workspace.slug}`)
          return exit(EXIT.notFound)
        }
        const told = `surface ${id} of ${workspace.slug}: deleted, its keys are revoked`
        print(json ? JSON.stringify({ id, workspaceId: workspace.id }) : told)
      }),
    )
}

function shown({ id, workspaceId, name, createdAt }: Surface) {
  return { id, workspaceId, name, createdAt }
}
