import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { registerReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import type { CommandContext } from '../command-context.ts'
import { EXIT, EXIT_OF_BUILD } from '../exit-codes.ts'
import { findLocalService } from '../local-environment.ts'
import { describeOutcome } from '../sourcemaps/describe-outcome.ts'
import { type Build, uploadBuild } from '../sourcemaps/upload-build.ts'
import { createUploadProgress } from '../sourcemaps/upload-progress.ts'

export interface UploadCommandContext extends Pick<CommandContext, 'print' | 'printError' | 'exit'> {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where the command runs. */
  readonly directory: string
  readonly stderr: NodeJS.WriteStream
  /** Calls it once when the command is to end. */
  readonly onStop: (stop: () => void) => void
}

const HELP = `
Finds the bundles in DIR (.js, .mjs, .cjs, .jsx) and their source maps: the one that a bundle's sourceMappingURL names,
else the file beside it (app.js.map), else the one with its debug id. Gives both a debug id where they have none, as a
comment behind the code and a field of the map; the same build gets the same ids. Registers the release, uploads the
maps and completes it. Run it before anything that hashes or compresses the bundles (integrity attributes, .gz, .br), and
deploy them as they are afterwards. Run it again whenever it fails: what has arrived is not sent twice. Nothing below
node_modules is looked at, and no symbolic link is followed.

The key is that of the surface with the scope release:write. It is read from --key-file or PENSTOCK_SECRET_KEY, else it is
the one of .local/credentials.json where "npm start" has run. It is no argument: others could see it in the process list.

Maps go straight to the object store, and in parts through the service where the store cannot be reached from here.

What fails the build, and what is only warned of:
  fails  a bundle names a map that is not there or is no source map (--allow-unmapped makes it a warning)
  fails  there are maps, and none belongs to a bundle or has a debug id
  warns  a map that belongs to no bundle; a map named by an address; a bundle and a map with different debug ids

Exit codes:
  0  ok: the release has all of its maps
  1  pipeline_failed: an upload failed or the service could not be reached; run it again
  2  the arguments or the environment are wrong
  4  api_key_wrong_prefix: the key is not a secret key (sk_)
  5  api_key_unreadable: there is no key, its file cannot be read, or its checksum is wrong
  6  api_key_rejected: the service does not know the key (401)
  7  api_key_scope_mismatch: the key may not write releases, or not this one (403)
  8  no_source_maps: there is none in DIR
  9  client_maps_unmapped: maps and bundles do not belong together, see above

Examples:
  $ npm run cli -- sourcemaps upload dist --version 1.4.2
  $ npm run cli -- sourcemaps upload dist --version "$GITHUB_SHA" --url-prefix https://cdn.example.com/app/
  $ npm run cli -- sourcemaps upload dist --version 1.4.2 --dry-run`

const options = z.object({
  version: registerReleaseSchema.shape.version,
  commit: registerReleaseSchema.shape.commit,
  urlPrefix: z.string().min(1).max(1_000),
  url: z.url({ protocol: /^https?$/ }).optional(),
  keyFile: z.string().min(1).optional(),
  concurrency: z.coerce.number().int().min(1).max(64),
  retryTimeout: z.coerce.number().min(0).max(86_400),
  parts: z.boolean().default(false),
  dryRun: z.boolean().default(false),
  allowUnmapped: z.boolean().default(false),
  inject: z.boolean(),
  json: z.boolean().default(false),
})

/** `sourcemaps upload`: what a build runs. Needs none of the stores. */
export function addSourcemapsUpload(parent: Command, context: UploadCommandContext): void {
  parent
    .command('upload')
    .description('upload the source maps of a build as a release')
    .argument('<dir>', 'the directory that the build has written')
    .requiredOption('--version <version>', 'the release: what its telemetry carries as service.version')
    .option('--url-prefix <prefix>', 'what the addresses of the bundles begin with; ~/ stands for any host', '~/')
    .option('--commit <hash>', 'the commit that was built')
    .option('--url <address>', 'of the service; else PENSTOCK_URL, else that of .local/credentials.json')
    .option('--key-file <file>', 'a file that holds the secret key')
    .option('--concurrency <n>', 'uploads at once, 1 to 64', '8')
    .option('--retry-timeout <seconds>', 'how long a request that fails for a passing reason is repeated', '300')
    .option('--parts', 'upload in parts through the service, even if the object store can be reached')
    .option('--allow-unmapped', 'only warn of bundles whose map is missing or no source map')
    .option('--no-inject', 'leave bundles and maps as they are')
    .option('--dry-run', 'say what would be done: write nothing, send nothing')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async (directory: string, given: unknown) => {
      const asked = options.safeParse(given)
      if (!asked.success) {
        const faults = asked.error.issues.map(({ path, message }) => `${optionName(String(path[0]))}: ${message}`)
        return usage(context, faults.join('\n'))
      }
      const build = await toBuild(context, directory, asked.data)
      if (typeof build === 'string') return usage(context, build)
      const outcome = await run(context, build)
      context.print(
        asked.data.json ? JSON.stringify({ version: build.version, ...outcome }) : describeOutcome(outcome, build),
      )
      if (outcome.message !== undefined) context.printError(`${outcome.result}: ${outcome.message}`)
      context.exit(EXIT_OF_BUILD[outcome.result])
    })
}

/** What the options ask for, or what is wrong with them. */
async function toBuild(
  { env, directory: workingDirectory }: UploadCommandContext,
  directory: string,
  asked: z.infer<typeof options>,
): Promise<Build | string> {
  const isDirectory = await stat(directory).then(
    found => found.isDirectory(),
    () => false,
  )
  if (!isDirectory) return `${directory} is not a directory`
  const local = await findLocalService(env, workingDirectory)
  const url = asked.url ?? (env.PENSTOCK_URL || undefined)
  if (url !== undefined && !z.url({ protocol: /^https?$/ }).safeParse(url).success) return 'PENSTOCK_URL is no address'
  const baseUrl = url ?? local?.baseUrl
  if (baseUrl === undefined && !asked.dryRun) return 'name the service with --url or PENSTOCK_URL'
  return {
    ...asked,
    directory,
    baseUrl: baseUrl ?? '',
    urlPrefix: asked.urlPrefix.endsWith('/') ? asked.urlPrefix : `${asked.urlPrefix}/`,
    key: {
      file: asked.keyFile,
      environment: env.PENSTOCK_SECRET_KEY || undefined,
      // A key of this machine is not for another service.
      local: local && sameAddress(local.baseUrl, baseUrl) ? local.secretKey : undefined,
    },
    retryTimeoutMs: asked.retryTimeout * 1_000,
    byParts: asked.parts,
  }
}

function run({ env, stderr, onStop }: UploadCommandContext, build: Build) {
  const stopping = new AbortController()
  onStop(() => stopping.abort())
  const deps = {
    fetch,
    now: Date.now,
    random: Math.random,
    delay: (ms: number, signal: AbortSignal) => delay(ms, undefined, { signal }),
    signal: stopping.signal,
    progress: createUploadProgress(stderr, { plain: !stderr.isTTY || Boolean(env.CI), now: Date.now }),
  }
  return uploadBuild(deps, build)
}

function usage({ printError, exit }: UploadCommandContext, text: string): void {
  printError(text)
  exit(EXIT.usage)
}

function sameAddress(a: string, b: string | undefined): boolean {
  return b !== undefined && new URL(a).origin === new URL(b).origin
}

function optionName(property: string): string {
  return `--${property.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
}
