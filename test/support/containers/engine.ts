import { execFile, spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MIB } from '../../../schemas/units.ts'
import { until } from '../until.ts'

const START_DEADLINE_MS = 60_000
const OUTPUT_BYTES = 64 * MIB
const PACKAGES = ['docker.io', 'docker-compose', 'containerd', 'iptables', 'mmdebstrap']
const LOG = '/var/log/penstock-test-dockerd.log'
const HERE = fileURLToPath(new URL('.', import.meta.url))
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)

/** Runs `docker` and returns its output. */
export async function docker(...args: string[]): Promise<string> {
  return (await run('docker', args, { maxBuffer: OUTPUT_BYTES })).stdout.trim()
}

/**
 * Makes sure that Docker's engine runs, and returns a function that ends the one that this started. Returns the reason if there is
 * none. In CI, missing packages are installed. Only root can start an engine.
 */
export async function startEngine(): Promise<(() => Promise<void>) | string> {
  if (process.env.CI && !isThere('docker')) installPackages()
  if (!isThere('docker')) return 'there is no docker command'
  if (composeCommand() === undefined) return 'there is neither "docker compose" nor docker-compose'
  if (isRunning()) return async () => {}
  if (process.getuid?.() !== 0 || !isThere('dockerd'))
    return "Docker's engine does not run, and only root can start one"
  const log = openSync(LOG, 'w')
  const dockerd = spawn('dockerd', [], { detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  const exited = new Promise<void>(resolve => dockerd.once('exit', () => resolve()))
  const stop = async () => {
    dockerd.kill('SIGTERM')
    await exited
  }
  try {
    await until("Docker's engine answers", isRunning, { deadlineMs: START_DEADLINE_MS, everyMs: 500 })
    return stop
  } catch {
    await stop()
    return `Docker's engine does not start here (${LOG})`
  }
}

/** Builds the image of this checkout as `penstock`, the servers that it needs, and what both are built on where it is missing. */
export async function buildImages(): Promise<void> {
  await run(`${HERE}base-images.sh`, { maxBuffer: OUTPUT_BYTES })
  await build('penstock-test-servers', `${HERE}servers.Dockerfile`, HERE)
  await build('penstock', `${ROOT}deploy/docker/Dockerfile`, ROOT)
}

async function build(tag: string, file: string, context: string): Promise<void> {
  // The engine of Debian has no other builder.
  const env = { ...process.env, DOCKER_BUILDKIT: '0' }
  await run('docker', ['build', '-q', '-t', tag, '-f', file, context], { env, maxBuffer: OUTPUT_BYTES })
}

/** Returns the command that composes containers, with its first argument: that of version 2 if there is one. */
export function composeCommand(): readonly [string, ...string[]] | undefined {
  if (process.env.DOCKER_COMPOSE) return [process.env.DOCKER_COMPOSE]
  if (succeeds('docker', ['compose', 'version'])) return ['docker', 'compose']
  return isThere('docker-compose') ? ['docker-compose'] : undefined
}

function installPackages(): void {
  if (process.getuid?.() !== 0 || !isThere('apt-get')) return
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  spawnSync('apt-get', ['-qq', 'update'], options)
  spawnSync('apt-get', ['-qq', 'install', '-y', '--no-install-recommends', ...PACKAGES], options)
}

const isRunning = () => succeeds('docker', ['info'])
const isThere = (command: string) => succeeds('sh', ['-c', 'command -v "$0"', command])

function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}
