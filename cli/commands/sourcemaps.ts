import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { Presets, SingleBar } from 'cli-progress'
import type { Command } from 'commander'
import { z } from 'zod'
import { listed } from '../../packages/build/src/upload/describe.ts'
import { type BuildUpload, type UploadProgress, uploadBuild } from '../../packages/build/src/upload/upload-build.ts'
import type { UploadReport } from '../../packages/build/src/upload-report.ts'
import { registerReleaseSchema } from '../../schemas/http/releases/schemas.ts'
import { MIB } from '../../schemas/units.ts'
import type { UploadCommandContext } from '../command-context.ts'
import { EXIT, EXIT_OF_BUILD, exitCodesHelp } from '../exit-codes.ts'
import { findLocalService } from '../local-environment.ts'
import { counted } from '../terminal.ts'

const HELP = `
Finds the bundles in DIR (.js, .mjs, .cjs, .jsx; .bundle, .jsbundle, .hbc) and the source map of each: the file that
sourceMappingURL names, else the file beside the bundle (app.js.map, main.jsbundle.hbc.map), else the map with the same
debug id. Bundles and maps without a debug id get one: as a comment after the code, as a field of the map, and in a statement before the code,
with which running code knows its id. Bytecode of Hermes is never changed. The same build always gets the same ids. The command
then registers the release, uploads the maps and completes the release.

Run it before any step that hashes or compresses the bundles (integrity attributes, .gz, .br), and deploy the bundles
unchanged afterwards. If it fails, run it again: maps that have arrived are not sent twice. Directories named
node_modules are skipped, and symbolic links are not followed.

The key is a secret key of the surface with the scope release:write. It is read from --key-file, else from
PENSTOCK_SECRET_KEY, else from .local/credentials.json, which "npm start" writes. It cannot be passed as an argument,
because other users could see it in the process list.

Maps are sent to the object store directly, or in parts through the service if the store cannot be reached. HTTP_PROXY,
HTTPS_PROXY and NO_PROXY are honoured, also in lower case. A single request takes no longer than --retry-timeout, but
at least 5 seconds, and the time that its bytes need.

Errors and warnings:
  error    a bundle names a map that does not exist or is not a source map (a warning with --allow-unmapped)
  error    there are maps, but none belongs to a bundle or has a debug id
  warning  a map belongs to no bundle; a bundle names its map by URL; a bundle and its map have different debug ids;
           the name of a file is not UTF-8: it is skipped

${exitCodesHelp({
  [EXIT_OF_BUILD.ok]: 'ok: the release has all of its maps',
  [EXIT_OF_BUILD.pipeline_failed]: 'pipeline_failed: an upload failed or the service is unavailable; run it again',
  [EXIT_OF_BUILD.api_key_wrong_prefix]: 'api_key_wrong_prefix: the key is not a secret key (sk_)',
  [EXIT_OF_BUILD.api_key_unreadable]:
    'api_key_unreadable: there is no key, its file cannot be read, or its checksum is wrong',
  [EXIT_OF_BUILD.api_key_rejected]: 'api_key_rejected: the key is unknown to the service (401)',
  [EXIT_OF_BUILD.api_key_scope_mismatch]:
    'api_key_scope_mismatch: the key does not allow writing releases, or not this one (403)',
  [EXIT_OF_BUILD.no_source_maps]: 'no_source_maps: DIR contains no source map',
  [EXIT_OF_BUILD.client_maps_unmapped]: 'client_maps_unmapped: maps and bundles do not match, see above',
})}

Examples:
  $ npm run cli -- sourcemaps upload dist --version 1.4.2
  $ npm run cli -- sourcemaps upload dist --version "$GITHUB_SHA" --url-prefix https://cdn.example.com/app/
  $ npm run cli -- sourcemaps upload dist --version 1.4.2 --dry-run`

const optionsSchema = z.object({
  version: registerReleaseSchema.shape.version,
  commit: registerReleaseSchema.shape.commit,
  repository: z
    .url({ protocol: /^https$/ })
    .max(500)
    .optional(),
  urlPrefix: z.string().min(1).max(1_000),
  url: z.url({ protocol: /^https?$/ }).optional(),
  keyFile: z.string().min(1).optional(),
  concurrency: z.coerce.number().int().min(1).max(64),
  retryTimeout: z.coerce.number().min(0).max(86_400),
  parts: z.boolean().default(false),
  dryRun: z.boolean().default(false),
  allowUnmapped: z.boolean().default(false),
  inject: z.boolean(),
  removeMaps: z.boolean().default(false),
  json: z.boolean().default(false),
})

/** Adds `sourcemaps upload`, which a build runs. */
export function addSourcemapsUpload(parent: Command, context: UploadCommandContext): void {
  parent
    .command('upload')
    .description('upload the source maps of a build as a release')
    .argument('<dir>', 'the directory that the build has written')
    .requiredOption('--version <version>', 'the release: the service.version that its telemetry carries')
    .option('--url-prefix <prefix>', 'the start of the URLs of the bundles; ~/ matches any host', '~/')
    .option('--commit <hash>', 'the git commit that was built')
    .option('--repository <url>', 'https URL of the git repository, so that frames link to their lines at --commit')
    .option('--url <url>', 'URL of the service; else PENSTOCK_URL, else that in .local/credentials.json')
    .option('--key-file <file>', 'a file that contains the secret key')
    .option('--concurrency <n>', 'uploads at the same time, 1 to 64', '8')
    .option('--retry-timeout <seconds>', 'how long a request is repeated, and waits for its answer', '300')
    .option('--parts', 'upload in parts through the service, even if the object store can be reached')
    .option('--allow-unmapped', 'only warn about bundles whose map is missing or is not a source map')
    .option('--no-inject', 'do not change bundles and maps')
    .option('--remove-maps', 'remove the files of maps from DIR once the release has them')
    .option('--dry-run', 'print what would be done; write nothing and send nothing')
    .option('--json', 'print the outcome as JSON')
    .addHelpText('after', HELP)
    .action(async (directory: string, given: unknown) => {
      const parsed = optionsSchema.safeParse(given)
      if (!parsed.success) {
        const issues = parsed.error.issues.map(({ path, message }) => `${optionName(String(path[0]))}: ${message}`)
        return usage(context, issues.join('\n'))
      }
      const build = await toBuild(context, directory, parsed.data)
      if (typeof build === 'string') return usage(context, build)
      await run(context, build, parsed.data.json)
    })
}

/** Returns the upload that the options describe, or what is wrong with them. */
async function toBuild(
  { env, directory: workingDirectory }: UploadCommandContext,
  directory: string,
  options: z.infer<typeof optionsSchema>,
): Promise<BuildUpload | string> {
  const isDirectory = await stat(directory).then(
    found => found.isDirectory(),
    () => false,
  )
  if (!isDirectory) return `${directory} is not a directory`
  const local = await findLocalService(env, workingDirectory)
  const url = options.url ?? (env.PENSTOCK_URL || undefined)
  if (url !== undefined && !z.url({ protocol: /^https?$/ }).safeParse(url).success) {
    return 'PENSTOCK_URL must be an http or https URL'
  }
  const baseUrl = url ?? local?.baseUrl
  if (baseUrl === undefined && !options.dryRun) return 'name the service with --url or PENSTOCK_URL'
  return {
    ...options,
    outputs: [{ directory }],
    baseUrl: baseUrl ?? '',
    urlPrefix: options.urlPrefix.endsWith('/') ? options.urlPrefix : `${options.urlPrefix}/`,
    key: {
      file: options.keyFile,
      environment: env.PENSTOCK_SECRET_KEY || undefined,
      // The key of the local installation is never sent to another service.
      local: local && sameOrigin(local.baseUrl, baseUrl) ? local.secretKey : undefined,
    },
    retryTimeoutMs: options.retryTimeout * 1_000,
    byParts: options.parts,
  }
}

async function run(context: UploadCommandContext, build: BuildUpload, json: boolean): Promise<void> {
  const { env, fetch, stderr, onStop, print, printError, exit } = context
  const stopping = new AbortController()
  onStop(() => stopping.abort())
  const deps = {
    fetch,
    now: Date.now,
    random: Math.random,
    delay: (ms: number, abortSignal: AbortSignal) => delay(ms, undefined, { signal: abortSignal }),
    abortSignal: stopping.signal,
    progress: createUploadProgress(stderr, { plain: !stderr.isTTY || Boolean(env.CI), now: Date.now }),
  }
  const outcome = await uploadBuild(deps, build)
  print(json ? JSON.stringify({ version: build.version, ...outcome }) : describeOutcome(outcome, build))
  if (outcome.message !== undefined) printError(`${outcome.result}: ${outcome.message}`)
  exit(EXIT_OF_BUILD[outcome.result])
}

/** Describes the outcome for stdout. The reason of a failure is printed to stderr. */
function describeOutcome(outcome: UploadReport, build: Pick<BuildUpload, 'version' | 'dryRun'>): string {
  const { result, files, fileCount, totalBytes, releaseSlug, timings } = outcome
  const release = `release ${JSON.stringify(build.version)}${releaseSlug === undefined ? '' : ` (${releaseSlug})`}`
  const injected = [...new Set(files.flatMap(file => file.injected))]
  const maps = `${counted(fileCount, 'source map')}, ${counted(totalBytes, 'byte')}`
  if (result !== 'ok') return `${release}: ${result}`
  if (build.dryRun) {
    const injection = injected.length > 0 ? `\nwould add a debug id to${listed(injected)}` : ''
    const upload = listed(files.map(({ path, chunkUrl }) => (chunkUrl === '' ? path : `${path} for ${chunkUrl}`)))
    return `would upload ${maps}, as ${release}:${upload}${injection}`
  }
  const known = files.filter(file => file.outcome === 'known').length
  return [
    `${release}: ${maps}`,
    `  ${fileCount - known} uploaded, ${known} already stored`,
    `  debug id added to ${counted(injected.length, 'file')}`,
    `  ${timings.total} ms (finding ${timings.discover}, registering ${timings.createRelease}, uploading ${timings.upload})`,
  ].join('\n')
}

function usage({ printError, exit }: UploadCommandContext, text: string): void {
  printError(text)
  exit(EXIT.usage)
}

function sameOrigin(a: string, b: string | undefined): boolean {
  return b !== undefined && new URL(a).origin === new URL(b).origin
}

function optionName(property: string): string {
  return `--${property.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
}

const LINE_EVERY_MS = 5_000

/** Creates the progress display: a bar on a terminal, and a line every five seconds if `plain` is set (logs and CI). */
function createUploadProgress(
  output: NodeJS.WritableStream,
  options: { plain: boolean; now: () => number },
): UploadProgress {
  return options.plain ? createPlainProgress(output, options.now) : createBarProgress(output)
}

function createPlainProgress(output: NodeJS.WritableStream, now: () => number): UploadProgress {
  let count: { what: string; total: number; done: number; bytes: number; printedAt: number } | undefined
  return {
    note: line => void output.write(`${line}\n`),
    begin(what, total) {
      count = { what, total, done: 0, bytes: 0, printedAt: now() }
      output.write(`${what}: ${total}\n`)
    },
    advance(bytes) {
      if (!count) return
      count.done++
      count.bytes += bytes
      if (now() - count.printedAt < LINE_EVERY_MS && count.done < count.total) return
      count.printedAt = now()
      output.write(`${count.what}: ${count.done} of ${count.total}, ${(count.bytes / MIB).toFixed(1)} MiB\n`)
    },
    end() {
      count = undefined
    },
  }
}

function createBarProgress(output: NodeJS.WritableStream): UploadProgress {
  let bar: SingleBar | undefined
  let bytes = 0
  return {
    note(line) {
      // The bar is redrawn below the line.
      output.write(bar ? `\r\x1b[K${line}\n` : `${line}\n`)
      bar?.render()
    },
    begin(what, total) {
      bytes = 0
      bar = new SingleBar(
        { format: `${what} [{bar}] {value}/{total} {mib} MiB`, stream: output, forceRedraw: true, gracefulExit: false },
        Presets.shades_classic,
      )
      bar.start(total, 0, { mib: '0.0' })
    },
    advance(size) {
      bytes += size
      bar?.increment(1, { mib: (bytes / MIB).toFixed(1) })
    },
    end() {
      bar?.stop()
      bar = undefined
    },
  }
}
