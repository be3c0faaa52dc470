import { type Command, Option } from 'commander'
import { SECRET_KEY_SCOPES } from '../../schemas/http/workspaces/schemas.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import { SURFACE_KEYS_MAX } from '../../shared/directory/surfaces.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import type { DirectoryCommandContext } from '../command-context.ts'
import { EXIT } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { durationSchema, parsedBy } from '../terminal.ts'

const HELP = `
Prints the key, and nothing else, to stdout: this once, since only its SHA-256 is kept. What it is goes to stderr.
A public key is for browsers and exporters. A secret key is for builds and needs a scope: ${SECRET_KEY_SCOPES.join(', ')}.

Exit codes:
  0  done
  1  the directory could not be used
  2  the arguments or the environment are wrong
  3  there is no such workspace or surface
 10  the surface has as many keys as it may have

Examples:
  $ npm run cli -- key create --workspace acme --surface srf_0f3a6c1d2b4e5f607182 --kind public
  $ npm run --silent cli -- key create --workspace acme --surface srf_0f3a6c1d2b4e5f607182 \\
      --kind secret --scope release:write --expires 90d > key.txt`

interface Asked {
  readonly workspace: string
  readonly surface: string
  readonly kind: SurfaceKey['kind']
  readonly scope?: readonly string[]
  /** In seconds. */
  readonly expires?: number
  readonly json?: boolean
}

/** `key create`: a public or secret key of a surface. */
export function addKeyCreate(parent: Command, context: DirectoryCommandContext): void {
  const { printError, exit } = context
  parent
    .command('create')
    .description('make a key of a surface')
    .requiredOption('--workspace <slug or id>', 'the workspace')
    .requiredOption('--surface <id>', 'the surface that the key is for')
    .addOption(new Option('--kind <kind>', 'of the key').choices(['public', 'secret']).makeOptionMandatory())
    .addOption(new Option('--scope <scope...>', 'what a secret key is for').choices(SECRET_KEY_SCOPES))
    .option(
      '--expires <time>',
      'how long it works: 90s, 15m, 1h, 30d; without it, until revoked',
      parsedBy(durationSchema),
    )
    .option('--json', 'print the key and what it is as JSON')
    .addHelpText('after', HELP)
    .action(async (asked: Asked) => {
      if ((asked.kind === 'secret') !== (asked.scope !== undefined)) {
        printError(asked.scope ? '--scope is for secret keys' : 'a secret key needs a --scope')
        return exit(EXIT.usage)
      }
      await createKey(asked, context)
    })
}

async function createKey(asked: Asked, context: DirectoryCommandContext): Promise<void> {
  const { print, printError, withDirectory, exit, now } = context
  await withDirectory(async ({ store }) => {
    const workspace = await findWorkspace(store, asked.workspace, context)
    if (workspace === undefined) return
    const text = generateKey(asked.kind)
    const at = now()
    const key: SurfaceKey = {
      version: 1,
      id: newId('key'),
      kind: asked.kind,
      digest: digestOf(text),
      prefix: text.slice(0, 6),
      workspaceId: workspace.id,
      surfaceId: asked.surface,
      scopes: [...new Set(asked.scope)],
      createdAt: new Date(at).toISOString(),
      expiresAt: asked.expires === undefined ? null : new Date(at + asked.expires * 1_000).toISOString(),
      revokedAt: null,
    }
    const outcome = await store.createSurfaceKey(key)
    if (outcome === 'no_surface') {
      printError(`there is no surface ${JSON.stringify(asked.surface)} in ${workspace.slug}`)
      return exit(EXIT.notFound)
    }
    if (outcome === 'too_many_keys') {
      printError(`${asked.surface} has ${SURFACE_KEYS_MAX} keys, revoked and expired ones too, and may have no more`)
      return exit(EXIT.conflict)
    }
    const { id, kind, scopes, expiresAt } = key
    if (asked.json) {
      print(JSON.stringify({ key: { id, kind, secret: text, ...(kind === 'secret' && { scopes }), expiresAt } }))
    } else {
      printError(`${kind} key ${id} of ${asked.surface}: made, works until ${expiresAt ?? 'it is revoked'}`)
      print(text)
    }
  })
}
