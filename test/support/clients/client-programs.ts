import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { MIB, MINUTE_MS } from '../../../schemas/units.ts'

/** How a client is started, or why it is missing. */
export type ClientProgram =
  | { readonly command: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly missing: string }

/** Clients of OpenTelemetry that the suite knows. */
export type ClientName = 'javascript' | 'python' | 'go' | 'java' | 'collector' | 'telemetrygen'

const FOLDER = join(import.meta.dirname, '../../clients')
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'penstock/clients')
/** Version of the Collector, its builder and telemetrygen. */
const COLLECTOR_VERSION = 'v0.161.0'
const INSTALL_DEADLINE_MS = 10 * MINUTE_MS

/**
 * Installs what each client is made of: packages of PyPI, of the Go module proxy and of Maven Central, once, in the cache of
 * this user. A client whose toolchain or registry is not there is missing, with the reason.
 */
export function installClients(): Record<ClientName, ClientProgram> {
  return {
    javascript: {
      command: [process.execPath, '--disable-warning=ExperimentalWarning', join(FOLDER, 'javascript/client.ts')],
    },
    python: python(),
    go: goProgram('go', ['go/go.mod', 'go/go.sum', 'go/main.go'], (folder, env) =>
      fault('go', ['build', '-C', join(FOLDER, 'go'), '-o', join(folder, 'go'), '.'], env),
    ),
    java: java(),
    telemetrygen: goProgram('telemetrygen', [], (folder, env) =>
      fault('go', ['install', `${CONTRIB}/cmd/telemetrygen@${COLLECTOR_VERSION}`], { ...env, GOBIN: folder }),
    ),
    collector: goProgram('otelcol', ['collector/builder.yaml'], (folder, env) => {
      const builder = `go.opentelemetry.io/collector/cmd/builder@${COLLECTOR_VERSION}`
      const config = ['--config', join(FOLDER, 'collector/builder.yaml'), '--output-path', folder]
      return fault('go', ['install', builder], { ...env, GOBIN: folder }) ?? fault(join(folder, 'builder'), config, env)
    }),
  }
}

const CONTRIB = 'github.com/open-telemetry/opentelemetry-collector-contrib'

function python(): ClientProgram {
  const version = spawnSync('python3', ['--version'], { encoding: 'utf8' })
  if (version.status !== 0) return { missing: 'there is no python3' }
  const requirements = join(FOLDER, 'python/requirements.txt')
  const { folder, missing } = cached('python', ['python/requirements.txt'], version.stdout, target =>
    fault('python3', ['-m', 'pip', 'install', '--quiet', '--target', target, '--requirement', requirements]),
  )
  if (missing !== undefined) return { missing }
  return { command: ['python3', join(FOLDER, 'python/client.py')], env: { PYTHONPATH: folder } }
}

function java(): ClientProgram {
  for (const command of ['java', 'mvn']) {
    if (spawnSync(command, ['--version']).status !== 0) return { missing: `there is no ${command}` }
  }
  const { folder, missing } = cached('java', ['java/pom.xml'], '', target => {
    const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${target}`]
    return fault('mvn', ['--quiet', '--batch-mode', '--file', join(FOLDER, 'java/pom.xml'), ...goal])
  })
  if (missing !== undefined) return { missing }
  return { command: ['java', '-Dfile.encoding=UTF-8', '-cp', join(folder, '*'), join(FOLDER, 'java/Client.java')] }
}

/**
 * Returns a program that Go builds with this name, from files of the folder of clients. Packages are compiled once for all of
 * them, because all are compiled as the builder does it. Other programs than the SDK are built at night only.
 */
function goProgram(
  name: string,
  sources: string[],
  build: (folder: string, env: NodeJS.ProcessEnv) => string | undefined,
): ClientProgram {
  const version = spawnSync('go', ['version'], { encoding: 'utf8' })
  if (version.status !== 0) return { missing: 'there is no Go toolchain' }
  const { folder, missing } = cached(name, sources, version.stdout + COLLECTOR_VERSION, target =>
    name !== 'go' && process.env.TEST_LENGTH !== 'nightly'
      ? 'it takes minutes to build: npm run test:clients -- --mode nightly does'
      : build(target, { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-trimpath' }),
  )
  return missing === undefined ? { command: [join(folder, name)] } : { missing }
}

/**
 * Returns a folder that `build` has filled, once for these sources, which are in its second argument. Only a complete one appears
 * under its name.
 */
export function cached(
  name: string,
  sources: string[],
  version: string,
  build: (folder: string, sourcesFolder: string) => string | undefined,
): { folder: string; missing?: string } {
  const hash = createHash('sha256').update(version)
  for (const source of sources) hash.update(readFileSync(join(FOLDER, source)))
  const folder = join(CACHE, `${name}-${hash.digest('hex').slice(0, 16)}`)
  if (existsSync(folder)) return { folder }
  console.log(`preparing the client ${name}`)
  const unfinished = `${folder}.${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  try {
    const missing = build(unfinished, FOLDER)
    if (missing !== undefined) return { folder, missing }
    if (!existsSync(folder)) renameSync(unfinished, folder)
    return { folder }
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/** Runs a command to its end; returns the last line of what it printed if it fails. */
export function fault(command: string, args: string[], env: NodeJS.ProcessEnv = process.env): string | undefined {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    env,
    encoding: 'utf8',
    maxBuffer: 64 * MIB,
    timeout: INSTALL_DEADLINE_MS,
  })
  if (status === 0) return undefined
  const last = `${stdout}\n${stderr}`.trim().split('\n').at(-1)
  return `${command} ${args[0]} failed: ${error?.message ?? last}`
}
