import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MIB, MINUTE_MS } from '../../../schemas/units.ts'
import { errorMessage } from '../../../shared/runtime/errors.ts'

/** A Collector to run, or the reason why there is none. */
type BuiltCollector = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly reason: string }

const BUILDER = 'go.opentelemetry.io/collector/cmd/builder@v0.161.0'
const MANIFEST = fileURLToPath(new URL('manifest.yaml', import.meta.url))
const BUILD_MS = 15 * MINUTE_MS
const SCRIPT = 'node bench/peers/otelcol/build-collector.ts'

/** Returns the folder of the built Collector, outside the checkout. Another manifest has another folder. */
async function cacheDir(): Promise<string> {
  const parent = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const digest = createHash('sha256')
    .update(await readFile(MANIFEST))
    .update(BUILDER)
    .digest('hex')
    .slice(0, 12)
  return join(parent, 'penstock', `otelcol-${digest}`)
}

/** Returns the Collector of `OTELCOL_BIN`, or one that was built before, or undefined. */
export async function findCollector(): Promise<string | undefined> {
  if (process.env.OTELCOL_BIN) return process.env.OTELCOL_BIN
  const path = join(await cacheDir(), 'dist', 'otelcol')
  return (await exists(path)) ? path : undefined
}

/**
 * Builds the Collector with its own builder from the Go module proxy, which takes some minutes, unless it was built before.
 * Returns a reason where Go is not installed or the build fails.
 */
export async function buildCollector(progress: (text: string) => void): Promise<BuiltCollector> {
  const found = await findCollector()
  if (found !== undefined) return { ok: true, path: found }
  if (!(await hasGo()))
    return { ok: false, reason: `there is no Go toolchain in PATH; ${SCRIPT} builds it where one is` }
  const dir = await cacheDir()
  // A build that is interrupted must not leave a part of the program where the next run looks for it.
  const begun = `${dir}.begun`
  try {
    await rm(begun, { recursive: true, force: true })
    await mkdir(begun, { recursive: true })
    progress(`building the OpenTelemetry Collector in ${begun}; this takes some minutes, once`)
    await run('go', ['install', BUILDER], begun, { GOBIN: begun })
    await run(join(begun, 'builder'), ['--config', MANIFEST], begun)
    await rm(join(begun, 'builder'))
    await rm(dir, { recursive: true, force: true })
    await rename(begun, dir)
    return { ok: true, path: join(dir, 'dist', 'otelcol') }
  } catch (error) {
    await rm(begun, { recursive: true, force: true })
    return { ok: false, reason: `its build failed: ${lastLine(error)}` }
  }
}

/** Runs a command until it ends. Its output, which names every module, is only kept for an error. */
async function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  await promisify(execFile)(command, [...args], {
    cwd,
    env: { ...process.env, ...env },
    timeout: BUILD_MS,
    maxBuffer: 64 * MIB,
  })
}

function lastLine(error: unknown): string {
  const stderr = (error as { stderr?: string }).stderr?.trim() ?? ''
  return (stderr === '' ? errorMessage(error) : stderr).split('\n').at(-1) ?? ''
}

async function hasGo(): Promise<boolean> {
  const dirs = (process.env.PATH ?? '').split(delimiter)
  for (const dir of dirs) if (await exists(join(dir, 'go'))) return true
  return false
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = await buildCollector(text => console.error(text))
  console.log(built.ok ? built.path : `skipped: ${built.reason}`)
  if (!built.ok) process.exitCode = 1
}
