import type { Command } from 'commander'
import type { SurfaceKey } from '../../../schemas/records/directory.ts'
import type { DirectoryCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { WORKSPACE_OPTION, withWorkspace } from '../../find-workspace.ts'
import { addLimitOptions, describeLimits, LIMITS_HELP, type LimitOptions, originsAfter, quotasAfter } from './limits.ts'

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
export function addKeyUpdate(parent: Command, context: DirectoryCommandContext): void {
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

async function updateKey(options: KeyUpdateOptions, { printError, exit, ...context }: DirectoryCommandContext) {
  const { surface, key: keyId, json } = options
  const stated = [options.requestsPerSecond, options.bytesPerSecond, options.bytesPerDay, options.allowOrigin]
  if (stated.every(option => option === undefined)) {
    printError('pass at least one limit to change')
    return exit(EXIT.usage)
  }
  await withWorkspace({ printError, exit, ...context }, options.workspace, async (workspace, store) => {
    const allowedOrigins = originsAfter(options)
    const known = await store.surfaceKey(workspace.id, surface, keyId)
    if (known === undefined) {
      printError(`there is no key ${JSON.stringify(keyId)} of ${surface} of ${workspace.slug}`)
      return exit(EXIT.notFound)
    }
    if (known.kind === 'secret' && allowedOrigins) {
      printError('--allow-origin is only for public keys')
      return exit(EXIT.usage)
    }
    const change = (key: SurfaceKey) => ({ quotas: quotasAfter(key.quotas ?? {}, options), allowedOrigins })
    const key = await store.updateSurfaceKey(workspace.id, surface, keyId, change, { by: null, now: context.now() })
    const { quotas, allowedOrigins: origins } = key ?? known
    const text = describeLimits(key ?? known) || 'no limits'
    context.print(json ? JSON.stringify({ id: keyId, quotas, allowedOrigins: origins }) : `key ${keyId}: ${text}`)
  })
}
