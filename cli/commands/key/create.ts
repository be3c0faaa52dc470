import { type Command, Option } from 'commander'
import { textOf } from '../../../schemas/http/fields.ts'
import { SECRET_KEY_SCOPES } from '../../../schemas/http/workspaces/schemas.ts'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { SURFACE_KEYS_MAX, WORKSPACE_SURFACE_KEYS_MAX } from '../../../shared/directory/surface-keys.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION, withWorkspace } from '../../find-workspace.ts'
import { durationSchema, parsedBy } from '../../terminal.ts'
import { addLimitOptions, LIMITS_HELP, type LimitOptions, originsAfter, quotasAfter } from './limits.ts'

const HELP = `
Prints only the key to stdout. A secret key cannot be shown again, because only its SHA-256 is stored. A description
goes to stderr. A public key is for browsers and exporters. A secret key is for builds and needs a scope:
${SECRET_KEY_SCOPES.join(', ')}.
${LIMITS_HELP}

${exitCodesHelp({
  [EXIT.notFound]: 'the workspace or the surface does not exist',
  [EXIT.conflict]: 'the surface has the maximum number of keys',
})}

Examples:
  $ npm run cli -- key create --workspace acme --surface srf_0f3a6c1d2b4e5f607182 --kind public
  $ npm run --silent cli -- key create --workspace acme --surface srf_0f3a6c1d2b4e5f607182 \\
      --kind secret --scope release:write --expires 90d > key.txt`

interface KeyCreateOptions extends LimitOptions {
  readonly workspace: string
  readonly surface: string
  readonly kind: SurfaceKey['kind']
  readonly name?: string
  readonly scope?: readonly string[]
  /** In seconds. */
  readonly expires?: number
  readonly json?: boolean
}

/** Adds `key create`, which creates a public or secret key of a surface. */
export function addKeyCreate(parent: Command, context: DirectoryCommandContext): void {
  const { exit } = context
  const command = parent
    .command('create')
    .description('create a key of a surface')
    .requiredOption(...WORKSPACE_OPTION)
    .requiredOption('--surface <id>', 'the surface that the key belongs to')
    .addOption(new Option('--kind <kind>', 'the kind of the key').choices(['public', 'secret']).makeOptionMandatory())
    .option('--name <name>', 'a name for people, such as that of the site', parsedBy(textOf(1, 120)))
    .addOption(new Option('--scope <scope...>', 'the scopes of a secret key').choices(SECRET_KEY_SCOPES))
    .option(
      '--expires <time>',
      'its lifetime: 90s, 15m, 1h or 30d; without it, valid until revoked',
      parsedBy(durationSchema),
    )
  addLimitOptions(command, { mayRemove: false })
    .option('--json', 'print the key and its description as JSON')
    .addHelpText('after', HELP)
    .action(async (options: KeyCreateOptions) => {
      if ((options.kind === 'secret') !== (options.scope !== undefined)) {
        return exit(EXIT.usage, options.scope ? '--scope is only for secret keys' : 'a secret key needs a --scope')
      }
      if (options.kind === 'secret' && options.allowOrigin) {
        return exit(EXIT.usage, '--allow-origin is only for public keys')
      }
      await createKey(options, context)
    })
}

function createKey(options: KeyCreateOptions, context: DirectoryCommandContext): Promise<void> {
  const { exit, now } = context
  return withWorkspace(context, options.workspace, async (workspace, store) => {
    const secret = generateKey(options.kind)
    const key = keyRecord(options, workspace.id, secret, now())
    const outcome = await store.createSurfaceKey(key, { by: null, now: now() })
    if (outcome === 'no_surface') {
      return exit(EXIT.notFound, `there is no surface ${JSON.stringify(options.surface)} in ${workspace.slug}`)
    }
    if (outcome === 'too_many_keys') {
      const rule = `a surface can have ${SURFACE_KEYS_MAX} active keys, and a workspace ${WORKSPACE_SURFACE_KEYS_MAX}`
      return exit(EXIT.conflict, `${options.surface} has the maximum number of keys: ${rule}`)
    }
    printKey(key, secret, options, context)
  })
}

function keyRecord(options: KeyCreateOptions, workspaceId: string, secret: string, now: number): SurfaceKey {
  const { kind, name, surface, scope, expires } = options
  const quotas = quotasAfter({}, options)
  const allowedOrigins = originsAfter(options)
  return {
    version: 1,
    id: newId('key'),
    kind,
    digest: digestOf(secret),
    prefix: secret.slice(0, 6),
    ...(name && { name }),
    ...(kind === 'public' && { publicKey: secret }),
    workspaceId,
    surfaceId: surface,
    scopes: [...new Set(scope)],
    createdAt: new Date(now).toISOString(),
    expiresAt: expires === undefined ? null : new Date(now + expires * 1_000).toISOString(),
    revokedAt: null,
    ...(Object.keys(quotas).length > 0 && { quotas }),
    ...(allowedOrigins && { allowedOrigins }),
  }
}

function printKey(
  { id, kind, scopes, surfaceId, expiresAt, quotas, allowedOrigins }: SurfaceKey,
  secret: string,
  { json }: KeyCreateOptions,
  { print, printError }: DirectoryCommandContext,
): void {
  const limits = { ...(quotas && { quotas }), ...(allowedOrigins && { allowedOrigins }) }
  const description = { id, kind, secret, ...(kind === 'secret' && { scopes }), expiresAt, ...limits }
  if (!json) printError(`${kind} key ${id} of ${surfaceId}: created, valid until ${expiresAt ?? 'it is revoked'}`)
  print(json ? JSON.stringify({ key: description }) : secret)
}
