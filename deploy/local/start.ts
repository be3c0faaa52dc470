import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { createClickHouse } from '../../clickhouse/client.ts'
import { MIGRATION_TIMEOUT_MS, migrate } from '../../clickhouse/migrate/migrate.ts'
import { BUILD_SCRIPT, isConsoleBuilt } from '../../console/build/freshness.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { connectConsumer } from '../../shared/queue/redis.ts'
import { tableSettingsOf } from '../../shared/runtime/config.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { LocalConfig } from './config.ts'
import { portsOf, ROOT } from './config.ts'
import { createLink, removeLinks } from './issuer/links.ts'
import { nextFreePort, portFault } from './ports.ts'
import { startChild } from './processes/child-process.ts'
import { addressesOf, localIssuerOf, processEnvironment, serviceProcesses } from './processes/processes.ts'
import type { StartLog } from './processes/start-log.ts'
import type { Supervisor } from './processes/supervisor.ts'
import { localServices, type ServiceAccess } from './stores/services.ts'
import { writePrivateJson } from './workspace/private-file.ts'
import { provision } from './workspace/provision.ts'
import { type LocalSecrets, loadSecrets } from './workspace/secrets.ts'

/** Contents of `.local/credentials.json` (deploy/local/README.md#credentials-file). */
export interface LocalCredentials {
  baseUrl: string
  ingestUrl: string
  apiUrl: string
  adminUrls: { ingest: string; workers: string; api: string }
  publicKey: string
  secretKey: string
  sessionToken: string
  workspaceSlug: string
  userId: string
  surfaceId: string
  redisUrl: string
  directoryRedisUrl: string
  clickhouseUrl: string
  s3: { endpoint: string; bucket: string; accessKeyId: string; secretAccessKey: string }
}

/** Result of a complete start. */
export interface Started {
  credentials: LocalCredentials
  /** Address of the console, which signs one browser in. Undefined if there is no console, or no issuer for it. */
  consoleUrl: string | undefined
}

/** Reports a problem that the user can fix. Only its message is shown, without a stack. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** Time in which the first workspace must be stored. A local Redis has answered before. */
const REDIS_DEADLINE_MS = 30_000
/** Programs read the session token from the file of the credentials when they start. It is valid for twelve hours. */
const RENEW_TOKEN_MS = HOUR_MS

/** Lines of a failed build that are shown: its end. */
const BUILD_LINES = 40

/** Collaborators of `startEverything`. */
interface StartDeps {
  config: LocalConfig
  env: Record<string, string | undefined>
  supervisor: Supervisor
  log: StartLog
  logger: Logger
  /** Whether a process starts again when one of its files changes. */
  isWatched: boolean
}

/** Starts everything. Writes the credentials last, so that their file exists only when everything is ready. */
export async function startEverything(deps: StartDeps): Promise<Started> {
  const { config, env, supervisor, log, logger, isWatched } = deps
  const credentialsPath = join(config.LOCAL_DIR, 'credentials.json')
  log.step('Keys and ports')
  await rm(credentialsPath, { force: true })
  const ports = portsOf(config)
  const fault = await portFault(ports)
  if (fault) throw new StartError(fault)

  const secrets = await loadSecrets(config.LOCAL_DIR)
  const named = new Set([...ports.values()].map(({ port }) => port))
  const directoryPort = config.DIRECTORY_REDIS_PORT ?? (await nextFreePort(config.REDIS_PORT, named))
  const showLine = (name: string, line: string) => log.line(name, line)
  const services = localServices(config, secrets, directoryPort, showLine)
  const { access } = services
  const run = (unit: (typeof services)['redis']) => (unit ? supervisor.run(unit) : Promise.resolve())
  const redis = Promise.all([run(services.redis), run(services.directory)])
  const clickhouse = run(services.clickhouse)
  await showInOrder(log, {
    'Stores: Redis, ClickHouse, S3': Promise.all([redis, clickhouse, run(services.s3)]),
    'Workspace and schema': Promise.all([
      redis.then(() => provisionDirectory(access, secrets, logger)),
      clickhouse.then(() => applyMigrations(config, access, log, logger)),
    ]),
    Console: buildConsole(log),
  })

  log.step('Edge, API and workers')
  const childEnv = processEnvironment(env, config, secrets, access)
  await Promise.all(serviceProcesses(config, childEnv, isWatched, showLine).map(unit => supervisor.run(unit)))

  const credentials = credentialsOf(config, secrets, access)
  await writePrivateJson(credentialsPath, credentials)
  const renewToken = async () => {
    const renewed = await loadSecrets(config.LOCAL_DIR)
    await writePrivateJson(credentialsPath, credentialsOf(config, renewed, access))
  }
  const onFault = (error: unknown) => logger.warn(errorFields(error), 'the session token was not renewed')
  setInterval(() => void renewToken().catch(onFault), RENEW_TOKEN_MS).unref()
  return { credentials, consoleUrl: await consoleUrlOf(config, env) }
}

/** Shows steps whose work has begun, each until it is done. Rejects as soon as any of them fails. */
async function showInOrder(log: StartLog, steps: Readonly<Record<string, Promise<unknown>>>): Promise<void> {
  const all = Promise.all(Object.values(steps))
  for (const [title, work] of Object.entries(steps)) {
    log.step(title)
    await Promise.race([work, all])
  }
}

/**
 * Builds the console if its sources have changed since it was built, and shows the output of a build that fails. A start without
 * the console is better than none.
 */
async function buildConsole(log: StartLog): Promise<void> {
  if (isConsoleBuilt()) return
  const output: string[] = []
  const startedAt = Date.now()
  const child = await startChild({
    command: process.execPath,
    args: [BUILD_SCRIPT],
    cwd: ROOT,
    env: process.env,
    log: line => {
      output.push(stripVTControlCharacters(line))
      if (output.length > BUILD_LINES) output.shift()
    },
  })
  const { code } = await child.exited
  if (code === 0) return log.progress('console', `built in ${secondsSince(startedAt)} s`)
  for (const line of output) log.line('console', line)
  log.note('console', 'could not be built, so that the service starts without it')
}

/** Returns the address of the console, with a new link of the local issuer. */
async function consoleUrlOf(config: LocalConfig, env: StartDeps['env']): Promise<string | undefined> {
  const { baseUrl } = addressesOf(config)
  if (!isConsoleBuilt()) return undefined
  if (env.AUTH_JWKS_URL) return env.CONSOLE_ISSUER ? `${baseUrl}/console/` : undefined
  await removeLinks(config.LOCAL_DIR)
  return `${localIssuerOf(config)}/open?code=${await createLink(config.LOCAL_DIR)}`
}

async function provisionDirectory(access: ServiceAccess, secrets: LocalSecrets, logger: Logger): Promise<void> {
  const redis = connectConsumer(access.directoryRedisUrl, logger)
  try {
    await withDeadline(
      provision(createDirectory(redis), secrets),
      REDIS_DEADLINE_MS,
      'the Redis of the directory does not answer',
    )
  } finally {
    redis.disconnect()
  }
}

async function applyMigrations(
  config: LocalConfig,
  access: ServiceAccess,
  log: StartLog,
  logger: Logger,
): Promise<void> {
  const startedAt = Date.now()
  const { database, ...connection } = access.clickhouse
  const client = createClickHouse({ ...connection, requestTimeoutMs: MIGRATION_TIMEOUT_MS })
  try {
    const tableSettings = tableSettingsOf(config)
    const changed = await migrate(client, { database, retentionDays: config.RETENTION_DAYS, tableSettings, logger })
    if (changed.migrations > 0) log.progress('clickhouse', `${changed.migrations} migrations applied`)
    if (changed.tables > 0) log.progress('clickhouse', `settings of ${changed.tables} tables changed`)
  } finally {
    await client.close()
  }
  log.progress('clickhouse', `schema is up to date after ${secondsSince(startedAt)} s`)
}

function secondsSince(startedAtMs: number): string {
  return ((Date.now() - startedAtMs) / 1_000).toFixed(1)
}

function credentialsOf(config: LocalConfig, secrets: LocalSecrets, access: ServiceAccess): LocalCredentials {
  const { baseUrl, apiUrl, adminUrls } = addressesOf(config)
  const { endpoint, bucket, accessKeyId, secretAccessKey } = access.s3
  return {
    baseUrl,
    ingestUrl: baseUrl,
    apiUrl,
    adminUrls,
    publicKey: secrets.publicKey,
    secretKey: secrets.secretKey,
    sessionToken: secrets.sessionToken,
    workspaceSlug: secrets.workspaceSlug,
    userId: secrets.userId,
    surfaceId: secrets.surfaceId,
    redisUrl: access.redisUrl,
    directoryRedisUrl: access.directoryRedisUrl,
    clickhouseUrl: access.clickhouse.url,
    s3: { endpoint, bucket, accessKeyId, secretAccessKey },
  }
}
