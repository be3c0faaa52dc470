import type { Command } from 'commander'
import type { SurfaceKey, WorkspaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { walkNewest } from '../directory/walk-newest.ts'
import { EXIT } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { rowOf } from '../terminal.ts'
import { addKeyCreate } from './key-create.ts'

const WHICH = `
With --surface, the public and secret keys of that surface; without, the API keys of the workspace. These are made by the
API alone (POST /v3/workspaces/{slug}/api-keys): each belongs to a user, and grants no more than that user may do.`

const CODES = `
Exit codes:
  0  done
  1  the directory could not be used
  2  the arguments or the environment are wrong
  3  there is no such workspace, surface or key`

const LIST_HELP = `${WHICH}
${CODES}

Examples:
  $ npm run cli -- key list --workspace acme --surface srf_0f3a6c1d2b4e5f607182
  $ npm run cli -- key list --workspace acme --json`

const REVOKE_HELP = `${WHICH}
Within a second nothing that carries the key is accepted any more. A revoked key does not come back.
${CODES}

Examples:
  $ npm run cli -- key revoke --workspace acme --surface srf_0f3a6c1d2b4e5f607182 --key key_5d0c4e9b7a8f61203344
  $ npm run cli -- key revoke --workspace acme --key key_99aa4e9b7a8f61203344`

const WORKSPACE = ['--workspace <slug or id>', 'the workspace'] as const
const SURFACE = ['--surface <id>', 'the surface whose keys are meant'] as const
/** A list has keys of surfaces, or keys of a workspace: these have a name and a maker, and all have one kind. */
const HEADS = {
  surface: ['ID', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'KIND', 'SCOPES'],
  workspace: ['ID', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'MADE BY', 'NAME', 'SCOPES'],
} as const
const WIDTHS = [24, 6, 7, 24, 24, 16, 16]

interface Asked {
  readonly workspace: string
  readonly surface?: string
  readonly key: string
  readonly json?: boolean
}

/** `key create`, `key list` and `key revoke`. */
export function addKeys(parent: Command, context: DirectoryCommandContext): void {
  const { print, printError, withDirectory, exit, now } = context
  const command = parent.command('key').description('the keys of surfaces and of workspaces')
  addKeyCreate(command, context)

  command
    .command('list')
    .description('list keys, the newest first, revoked and expired ones too, of deleted surfaces too')
    .requiredOption(...WORKSPACE)
    .option(...SURFACE)
    .option('--json', 'print each as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ workspace: name, surface: surfaceId, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, name, context)
        if (workspace === undefined) return
        if (surfaceId !== undefined && !(await store.surfaceIds(workspace.id)).includes(surfaceId)) {
          printError(`there is no surface ${JSON.stringify(surfaceId)} in ${workspace.slug}`)
          return exit(EXIT.notFound)
        }
        if (!json) print(rowOf(HEADS[surfaceId === undefined ? 'workspace' : 'surface'], WIDTHS))
        for await (const key of keysOf(store, workspace.id, surfaceId)) {
          const listed = listedKey(key, now())
          print(json ? JSON.stringify(listed) : rowOf(cellsOf(listed), WIDTHS))
        }
      }),
    )

  command
    .command('revoke')
    .description('revoke a key')
    .requiredOption(...WORKSPACE)
    .option(...SURFACE)
    .requiredOption('--key <id>', 'the id of the key: key_…')
    .option('--json', 'print what was revoked as JSON')
    .addHelpText('after', REVOKE_HELP)
    .action(({ workspace: name, surface: surfaceId, key: id, json }: Asked) =>
      withDirectory(async ({ store }) => {
        const workspace = await findWorkspace(store, name, context)
        if (workspace === undefined) return
        const outcome = await (surfaceId === undefined
          ? store.revokeWorkspaceKey(workspace.id, id, now())
          : store.revokeSurfaceKey(workspace.id, surfaceId, id, now()))
        const owner = surfaceId === undefined ? workspace.slug : `${surfaceId} of ${workspace.slug}`
        if (outcome === 'absent') {
          printError(`there is no key ${JSON.stringify(id)} of ${owner}`)
          return exit(EXIT.notFound)
        }
        print(json ? JSON.stringify({ id, workspaceId: workspace.id }) : `key ${id} of ${owner}: revoked`)
      }),
    )
}

async function* keysOf(
  store: Directory,
  workspaceId: string,
  surfaceId: string | undefined,
): AsyncGenerator<SurfaceKey | WorkspaceKey> {
  if (surfaceId === undefined) yield* walkNewest(page => store.workspaceKeys(workspaceId, page))
  else yield* await store.surfaceKeys(workspaceId, surfaceId)
}

type ListedKey = ReturnType<typeof listedKey>

function listedKey(key: SurfaceKey | WorkspaceKey, now: number) {
  const { id, prefix, scopes, createdAt, expiresAt, revokedAt } = key
  const own =
    'kind' in key ? { kind: key.kind } : { kind: 'workspace' as const, name: key.name, createdBy: key.createdBy }
  return { id, ...own, prefix, state: keyState(key, now), scopes, createdAt, expiresAt, revokedAt }
}

function cellsOf(key: ListedKey): string[] {
  const { id, prefix, state, createdAt, expiresAt, scopes } = key
  const own = key.kind === 'workspace' ? [key.createdBy, key.name] : [key.kind]
  return [id, prefix, state, createdAt, expiresAt ?? 'never', ...own, scopes.join(' ')]
}
