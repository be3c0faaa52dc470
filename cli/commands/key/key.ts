import type { Command } from 'commander'
import type { SurfaceKey, WorkspaceKey } from '../../../schemas/records/directory.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { walkNewest } from '../../../shared/directory/sorted-index.ts'
import type { MakerState } from '../../../shared/directory/surface-keys.ts'
import { keyState } from '../../../shared/ids/key-state.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION, withWorkspace } from '../../find-workspace.ts'
import { rowOf } from '../../terminal.ts'
import { addKeyCreate } from './create.ts'
import { addLimitOptions, describeLimits, LIMITS_HELP, type LimitOptions, originsAfter, quotasAfter } from './limits.ts'

const WHICH = `
With --surface, the public and secret keys of that surface; without it, the API keys of the workspace. API keys can be
created only through the API (POST /v3/workspaces/{slug}/api-keys), because each belongs to a user and grants no more
than the permissions of that user.`

const LIST_HELP = `${WHICH}

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the surface does not exist' })}

Examples:
  $ npm run cli -- key list --workspace acme --surface srf_0f3a6c1d2b4e5f607182
  $ npm run cli -- key list --workspace acme --json`

const REVOKE_HELP = `${WHICH}
Within a second, requests with the key are rejected. A revoked key cannot be restored.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the key does not exist' })}

Examples:
  $ npm run cli -- key revoke --workspace acme --surface srf_0f3a6c1d2b4e5f607182 --key key_5d0c4e9b7a8f61203344
  $ npm run cli -- key revoke --workspace acme --key key_99aa4e9b7a8f61203344`

const SURFACE_OPTION = ['--surface <id>', 'the surface that the keys belong to'] as const
/** Column heads of a list of surface keys, and of a list of workspace keys, which have a name and a creator. */
const HEADS = {
  surface: ['ID', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'KIND', 'CREATED BY', 'SCOPES AND LIMITS'],
  workspace: ['ID', 'PREFIX', 'STATE', 'CREATED', 'EXPIRES', 'CREATED BY', 'NAME', 'SCOPES'],
} as const
const WIDTHS = [24, 6, 9, 24, 24, 16, 16]

interface KeyOptions {
  readonly workspace: string
  readonly surface?: string
  readonly key: string
  readonly json?: boolean
}

/** Adds `key create`, `key update`, `key list` and `key revoke`. */
export function addKeys(parent: Command, context: DirectoryCommandContext): void {
  const command = parent.command('key').description('the keys of surfaces and of workspaces')
  addKeyCreate(command, context)
  addKeyUpdate(command, context)
  addList(command, context)
  addRevoke(command, context)
}

function addList(command: Command, context: DirectoryCommandContext): void {
  const { print, exit, now } = context
  command
    .command('list')
    .description('list keys, newest first, with revoked and expired keys and those of deleted surfaces')
    .requiredOption(...WORKSPACE_OPTION)
    .option(...SURFACE_OPTION)
    .option('--json', 'print each key as a line of JSON')
    .addHelpText('after', LIST_HELP)
    .action(({ workspace: slugOrId, surface: surfaceId, json }: KeyOptions) =>
      withWorkspace(context, slugOrId, async (workspace, store) => {
        if (surfaceId !== undefined && !(await store.surfaceIds(workspace.id)).includes(surfaceId)) {
          return exit(EXIT.notFound, `there is no surface ${JSON.stringify(surfaceId)} in ${workspace.slug}`)
        }
        if (!json) print(rowOf(HEADS[surfaceId === undefined ? 'workspace' : 'surface'], WIDTHS))
        const keys = surfaceId === undefined ? [] : await store.surfaceKeys(workspace.id, surfaceId)
        const makers = await store.makerStates(workspace.id, keys, now())
        for await (const key of surfaceId === undefined ? apiKeysOf(store, workspace.id) : keys) {
          const listed = listedKey(key, now(), makers)
          print(json ? JSON.stringify(listed) : rowOf(cellsOf(listed), WIDTHS))
        }
      }),
    )
}

function addRevoke(command: Command, context: DirectoryCommandContext): void {
  const { print, exit, now } = context
  command
    .command('revoke')
    .description('revoke a key')
    .requiredOption(...WORKSPACE_OPTION)
    .option(...SURFACE_OPTION)
    .requiredOption('--key <id>', 'the id of the key (key_…)')
    .option('--json', 'print the revoked key as JSON')
    .addHelpText('after', REVOKE_HELP)
    .action(({ workspace: slugOrId, surface: surfaceId, key: id, json }: KeyOptions) =>
      withWorkspace(context, slugOrId, async (workspace, store) => {
        const outcome = await (surfaceId === undefined
          ? store.revokeWorkspaceKey(workspace.id, id, now(), { by: null, now: now() })
          : store.revokeSurfaceKey(workspace.id, surfaceId, id, now(), { by: null, now: now() }))
        const owner = surfaceId === undefined ? workspace.slug : `${surfaceId} of ${workspace.slug}`
        if (outcome === 'absent') return exit(EXIT.notFound, `there is no key ${JSON.stringify(id)} of ${owner}`)
        print(json ? JSON.stringify({ id, workspaceId: workspace.id }) : `key ${id} of ${owner}: revoked`)
      }),
    )
}

function apiKeysOf(store: Directory, workspaceId: string): AsyncGenerator<WorkspaceKey> {
  return walkNewest(page => store.workspaceKeys(workspaceId, page))
}

type ListedKey = ReturnType<typeof listedKey>

function listedKey(key: SurfaceKey | WorkspaceKey, now: number, makers: ReadonlyMap<string, MakerState>) {
  const { id, prefix, scopes, createdAt, expiresAt, revokedAt } = key
  const fieldsOfKind = 'kind' in key ? surfaceFields(key, makers) : workspaceFields(key)
  return { id, ...fieldsOfKind, prefix, state: keyState(key, now), scopes, createdAt, expiresAt, revokedAt }
}

function workspaceFields({ name, createdBy }: WorkspaceKey) {
  return { kind: 'workspace' as const, name, createdBy: { userId: createdBy, apiKeyId: null } }
}

function surfaceFields(
  { kind, name, createdBy, quotas, allowedOrigins }: SurfaceKey,
  makers: ReadonlyMap<string, MakerState>,
) {
  const apiKeyState = createdBy?.apiKeyId ? (makers.get(createdBy.apiKeyId) ?? 'removed') : null
  const maker = createdBy ? { ...createdBy, apiKeyState } : null
  return { kind, name, createdBy: maker, quotas, allowedOrigins }
}

function cellsOf(key: ListedKey): string[] {
  const { id, prefix, state, createdAt, expiresAt, scopes } = key
  const common = [id, prefix, state, createdAt, expiresAt ?? 'never']
  if (key.kind === 'workspace') return [...common, key.createdBy.userId, key.name, scopes.join(' ')]
  const maker = key.createdBy
  const apiKey = maker?.apiKeyId ? ` with ${maker.apiKeyId} (${maker.apiKeyState})` : ''
  return [...common, key.kind, maker ? maker.userId + apiKey : '-', `${scopes.join(' ')} ${describeLimits(key)}`.trim()]
}

const HELP = `${LIMITS_HELP}
What is not named stays as it is, and "none" removes a limit. Edges apply the change within a second.

${exitCodesHelp({ [EXIT.notFound]: 'the workspace or the key does not exist' })}

Examples:
  $ npm run cli -- key update --workspace acme --surface srf_0f3a6c1d2b4e5f607182 --key key_5d0c4e9b7a8f61203344 \\
      --requests-per-second 200 --bytes-per-day 10000000000
  $ npm run cli -- key update --workspace acme --surface srf_0f3a6c1d2b4e5f607182 --key key_5d0c4e9b7a8f61203344 \\
      --allow-origin https://shop.example 'https://*.shop.example'`

interface KeyUpdateOptions extends LimitOptions {
  readonly workspace: string
  readonly surface: string
  readonly key: string
  readonly json?: boolean
}

/** Adds `key update`, which changes the limits of a key of a surface. */
function addKeyUpdate(parent: Command, context: DirectoryCommandContext): void {
  const command = parent
    .command('update')
    .description('change the quotas and the allowed origins of a key of a surface')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--surface <id>', 'the surface that the key belongs to')
    .requiredOption('--key <id>', 'the id of the key (key_…)')
  addLimitOptions(command, { mayRemove: true })
    .option('--json', 'print the changed limits as JSON')
    .addHelpText('after', HELP)
    .action((options: KeyUpdateOptions) => updateKey(options, context))
}

async function updateKey(options: KeyUpdateOptions, { exit, ...context }: DirectoryCommandContext) {
  const { surface, key: keyId, json } = options
  const stated = [options.requestsPerSecond, options.bytesPerSecond, options.bytesPerDay, options.allowOrigin]
  if (stated.every(option => option === undefined)) return exit(EXIT.usage, 'pass at least one limit to change')
  await withWorkspace({ exit, ...context }, options.workspace, async (workspace, store) => {
    const allowedOrigins = originsAfter(options)
    const known = await store.surfaceKey(workspace.id, surface, keyId)
    if (known === undefined) {
      return exit(EXIT.notFound, `there is no key ${JSON.stringify(keyId)} of ${surface} of ${workspace.slug}`)
    }
    if (known.kind === 'secret' && allowedOrigins) return exit(EXIT.usage, '--allow-origin is only for public keys')
    const change = (key: SurfaceKey) => ({ quotas: quotasAfter(key.quotas ?? {}, options), allowedOrigins })
    const key = await store.updateSurfaceKey(workspace.id, surface, keyId, change, { by: null, now: context.now() })
    const { quotas, allowedOrigins: origins } = key ?? known
    const text = describeLimits(key ?? known) || 'no limits'
    context.print(json ? JSON.stringify({ id: keyId, quotas, allowedOrigins: origins }) : `key ${keyId}: ${text}`)
  })
}
