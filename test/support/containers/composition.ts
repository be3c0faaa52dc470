import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { freePort } from '../../../deploy/local/ports.ts'
import { usersConfig } from '../../../deploy/local/stores/clickhouse.ts'
import { provision } from '../../../deploy/local/workspace/provision.ts'
import { type LocalSecrets, loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import type { S3Access } from '../services/services.ts'
import { until } from '../until.ts'
import { composeCommand, docker } from './engine.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const DEPLOY = join(ROOT, 'deploy/docker')
const LOCAL = fileURLToPath(new URL('compose.local.yaml', import.meta.url))
/** Address of the bucket on the S3 server of `npm start`. */
const S3_PATH = '/cdn-cgi/local/r2/s3'
const OUTPUT_BYTES = 64 * MIB
const HEALTHY_DEADLINE_MS = 240_000
const run = promisify(execFile)

/** A service of compose.yaml. */
export type ServiceName =
  | 'proxy'
  | 'edge'
  | 'workers-telemetry'
  | 'workers-rest'
  | 'workers-deliveries'
  | 'api'
  | 'redis'
  | 'directory'
  | 'clickhouse'
  | 's3'
  | 'prometheus'

/** The containers of compose.yaml, with a workspace, and the addresses of their servers for tests. */
export interface Composition {
  readonly secrets: LocalSecrets
  /** Address of the proxy, with TLS. */
  readonly url: string
  readonly redisUrl: string
  readonly directoryRedisUrl: string
  readonly clickhouseUrl: string
  readonly prometheusUrl: string
  readonly s3: S3Access
  /** Name of this composition, with which the names of its networks begin. */
  readonly project: string
  /** Names of the containers of a service. */
  containers(service: ServiceName): readonly string[]
  /** Runs a command of operators, as deploy/docker/README.md says, and returns its output. */
  penstock(...args: string[]): Promise<string>
  /** Starts containers that have ended, waits until they are healthy, and lets the proxy look up where they are. */
  start(...names: string[]): Promise<void>
  /** Removes the containers with their data. */
  stop(): Promise<void>
}

/** Makes the secrets of a composition in this directory, as an operator does. */
export async function makeSecrets(dir: string): Promise<void> {
  await run(join(DEPLOY, 'make-secrets.sh'), [dir])
  await mkdir(join(dir, 'workspace'))
  const { authPublicKey } = await loadSecrets(join(dir, 'workspace'))
  await writeFile(join(dir, 'auth_public_key'), authPublicKey)
  const password = await readFile(join(dir, 'clickhouse_password'), 'utf8')
  await writeFile(join(dir, 'clickhouse_local_users.xml'), usersConfig(password, '::/0'), { mode: 0o644 })
}

/** Starts compose.yaml with the images of this machine. The secrets are those of `PENSTOCK_SECRETS`. */
export async function startComposition(): Promise<Composition> {
  const dir = process.env.PENSTOCK_SECRETS
  const [command, ...before] = composeCommand() ?? []
  if (dir === undefined || command === undefined) throw new Error('start these tests with "npm run test:compose"')
  const read = (name: string) => readFile(join(dir, name), 'utf8')
  const project = `penstock-test-${randomBytes(4).toString('hex')}`
  const [port, redisPort, directoryPort] = [await freePort(), await freePort(), await freePort()]
  const [clickhousePort, s3Port, prometheusPort] = [await freePort(), await freePort(), await freePort()]
  const env = {
    ...process.env,
    PENSTOCK_PORT: String(port),
    REDIS_PORT: String(redisPort),
    DIRECTORY_REDIS_PORT: String(directoryPort),
    CLICKHOUSE_PORT: String(clickhousePort),
    S3_PORT: String(s3Port),
    PROMETHEUS_PORT: String(prometheusPort),
    S3_ENDPOINT: `http://s3:8333${S3_PATH}`,
    S3_PUBLIC_ENDPOINT: `http://127.0.0.1:${s3Port}${S3_PATH}`,
    LOG_LEVEL: 'warn',
  }
  // Version 1 of docker-compose refuses the name of the project in the file.
  const file = join(dir, 'compose.yaml')
  await writeFile(file, (await readFile(join(DEPLOY, 'compose.yaml'), 'utf8')).replace(/^name: .*$/m, ''))
  const compose = (...args: string[]) =>
    run(command, [...before, '-p', project, '--project-directory', DEPLOY, '-f', file, '-f', LOCAL, ...args], {
      env,
      maxBuffer: OUTPUT_BYTES,
    })
  const stop = async () => {
    await compose('down', '--volumes', '--timeout', '1')
  }

  try {
    await compose('up', '-d', '--no-build')
    const names = await namesOf(project)
    const containers = (service: ServiceName) => names.get(service) ?? []
    const secrets = await loadSecrets(join(dir, 'workspace'))
    const redisUrl = `redis://default:${await read('redis_password')}@127.0.0.1:${redisPort}`
    const directoryRedisUrl = `redis://default:${await read('directory_redis_password')}@127.0.0.1:${directoryPort}`
    const directory = new Redis(directoryRedisUrl)
    await provision(createDirectory(directory), secrets)
    directory.disconnect()
    await untilHealthy([...names.values()].flat())
    return {
      project,
      secrets,
      url: `https://127.0.0.1:${port}`,
      redisUrl,
      directoryRedisUrl,
      clickhouseUrl: `http://penstock:${await read('clickhouse_password')}@127.0.0.1:${clickhousePort}`,
      prometheusUrl: `http://127.0.0.1:${prometheusPort}`,
      s3: {
        endpoint: `http://127.0.0.1:${s3Port}${S3_PATH}`,
        region: 'us-east-1',
        bucket: 'penstock',
        accessKeyId: await read('s3_access_key_id'),
        secretAccessKey: await read('s3_secret_access_key'),
      },
      containers,
      penstock: async (...args) => (await compose('run', '--rm', '-T', 'penstock', ...args)).stdout.trim(),
      async start(...started) {
        await docker('start', ...started)
        await untilHealthy(started)
        await docker('kill', '-s', 'HUP', ...containers('proxy'))
      },
      stop,
    }
  } catch (error) {
    const { stdout } = await compose('logs', '--tail', '20').catch(() => ({ stdout: 'no logs' }))
    await stop()
    throw new Error(`the composition did not start:\n${stdout}`, { cause: error })
  }
}

/** Returns the names of the running containers of a project by their service. */
async function namesOf(project: string): Promise<Map<string, string[]>> {
  const format = '{{.Label "com.docker.compose.service"}} {{.Names}}'
  const lines = await docker('ps', '--filter', `label=com.docker.compose.project=${project}`, '--format', format)
  const names = new Map<string, string[]>()
  for (const line of lines.split('\n').sort()) {
    const [service = '', name = ''] = line.split(' ')
    names.set(service, [...(names.get(service) ?? []), name])
  }
  return names
}

/** Runs the health checks of the containers until they succeed, which is sooner than Docker's next time for them. */
async function untilHealthy(names: readonly string[]): Promise<void> {
  const isHealthy = async (name: string) => {
    const check = await docker('inspect', '--format', '{{json .Config.Healthcheck}}', name)
    const { Test } = JSON.parse(check) as { Test: [string, ...string[]] }
    const [kind, ...command] = Test
    const succeeds = docker('exec', name, ...(kind === 'CMD-SHELL' ? ['sh', '-c', ...command] : command))
    return succeeds.then(
      () => true,
      () => false,
    )
  }
  const untilOneIs = (name: string) =>
    until(`${name} is healthy`, () => isHealthy(name), { deadlineMs: HEALTHY_DEADLINE_MS, everyMs: 500 })
  await Promise.all(names.map(untilOneIs))
}
