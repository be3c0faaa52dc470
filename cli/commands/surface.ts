import type { Command } from 'commander'
import type { Surface } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import { walkNewest } from '../../shared/directory/sorted-index.ts'
import { SURFACES_MAX } from '../../shared/directory/surfaces.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { addWorkspaceList, WORKSPACE_OPTION, withWorkspace } from '../find-workspace.ts'
import { nameSchema, parsedBy } from '../terminal.ts'

const CREATE_HELP = `
A surface is an application, for example a web site or a server. Its keys are created by "key create".

${exitCodesHelp({
  [EXIT.notFound]: 'the workspace does not exist',
  [EXIT.conflict]: 'the workspace has the maximum number of surfaces',
})}

Example:
  $ npm run cli -- surface create --workspace acme --name 'Web shop'`

const DELETE_HELP = `
Revokes all keys of the surface. Within a second, requests with these keys are rejected. Stored telemetry of the surface
stays until its retention ends. A deleted surface cannot be restored.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the surface does not exist' })}

Example:
  $ npm run cli -- surface delete --workspace acme --surface srf_0f3a6c1d2b4e5f607182`

interface SurfaceOptions {
  readonly workspace: string
  readonly surface: string
  readonly name: string
  readonly json?: boolean
}

/** Adds `surface create`, `surface list` and `surface delete`. */
export function addSurfaces(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('surface').description('the applications of a workspace')
  addCreate(command, context)
  addWorkspaceList(command, context, {
    description: 'list the surfaces of a workspace, newest first',
    each: 'surface',
    columns: { ID: 24, CREATED: 24, NAME: 0 },
    entries: (store, workspaceId) => walkNewest(page => store.surfaces(workspaceId, page)),
    cells: ({ id, createdAt, name }) => [id, createdAt, name],
    shown,
  })
  addDelete(command, context)
}

function addCreate(command: Command, context: DirectoryCommandContext): void {
  const { print, exit, now } = context
  command
    .command('create')
    .description('create a surface')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--name <name>', 'its display name', parsedBy(nameSchema))
    .option('--json', 'print the surface as JSON')
    .addHelpText('after', CREATE_HELP)
    .action(({ workspace: slugOrId, name, json }: SurfaceOptions) =>
      withWorkspace(context, slugOrId, async ({ id: workspaceId, slug }, store) => {
        const createdAt = new Date(now()).toISOString()
        const surface: Surface = { version: 1, id: newId('srf'), workspaceId, name, createdAt }
        if ((await store.createSurface(surface, { by: null, now: now() })) === 'too_many_surfaces') {
          return exit(
            EXIT.conflict,
            `${slug} has ${SURFACES_MAX} surfaces, which is the maximum: delete surfaces that are not used`,
          )
        }
        print(json ? JSON.stringify(shown(surface)) : `surface ${surface.id} of ${slug}: created`)
      }),
    )
}

function addDelete(command: Command, context: DirectoryCommandContext): void {
  const { print, exit, now } = context
  command
    .command('delete')
    .description('delete a surface and revoke its keys')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--surface <id>', 'the surface')
    .option('--json', 'print the deleted surface as JSON')
    .addHelpText('after', DELETE_HELP)
    .action(({ workspace: slugOrId, surface: id, json }: SurfaceOptions) =>
      withWorkspace(context, slugOrId, async ({ id: workspaceId, slug }, store) => {
        if ((await store.deleteSurface(workspaceId, id, now(), { by: null, now: now() })) === 'absent') {
          return exit(EXIT.notFound, `there is no surface ${JSON.stringify(id)} in ${slug}`)
        }
        print(json ? JSON.stringify({ id, workspaceId }) : `surface ${id} of ${slug}: deleted, its keys are revoked`)
      }),
    )
}

function shown({ id, workspaceId, name, createdAt }: Surface) {
  return { id, workspaceId, name, createdAt }
}
