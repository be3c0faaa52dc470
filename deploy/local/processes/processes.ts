import { hash } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { grpcPortOf } from '../../../ingest/config.ts'
import { errorMessage } from '../../../shared/runtime/errors.ts'
import { type LocalConfig, ROOT, reachableHost } from '../config.ts'
import { ISSUER_PATH } from '../issuer/pages.ts'
import type { ServiceAccess } from '../stores/services.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, type LocalSecrets } from '../workspace/secrets.ts'
import { type ChildProcess, type LineLog, startChild, untilReady } from './child-process.ts'
import type { Unit } from './supervisor.ts'

/** Addresses of the service's processes. */
interface Addresses {
  baseUrl: string
  grpcUrl: string
  apiUrl: string
  adminUrls: { ingest: string; workers: string; api: string }
}

/** Returns the addresses at which this machine reaches the processes. */
export function addressesOf(config: LocalConfig): Addresses {
  const at = (port: number, host = config.BIND_HOST) => `http://${reachableHost(host)}:${port}`
  const adminAt = (port: number) => at(port, config.ADMIN_BIND_HOST)
  return {
    baseUrl: at(config.INGEST_PORT),
    grpcUrl: at(grpcPortOf(config)),
    apiUrl: at(config.API_PORT),
    adminUrls: {
      ingest: adminAt(config.INGEST_ADMIN_PORT),
      workers: adminAt(config.WORKERS_ADMIN_PORT),
      api: adminAt(config.API_ADMIN_PORT),
    },
  }
}

/** Returns the URL of the issuer that signs the users of the console in. */
export function localIssuerOf(config: LocalConfig): string {
  return addressesOf(config).baseUrl + ISSUER_PATH
}

/** Returns the service's processes in the order of stopping: each stops before the one that takes its output. */
export function serviceProcesses(
  config: LocalConfig,
  env: Record<string, string | undefined>,
  isWatched: boolean,
  log: (name: string, line: string) => void,
): Unit[] {
  const { adminUrls, baseUrl } = addressesOf(config)
  const unit = (
    name: string,
    script: string,
    adminUrl: string,
    stopStage: number,
    stopDeadlineMs: number,
    more = {},
  ): Unit => ({
    name,
    stopStage,
    stopDeadlineMs,
    start: signal =>
      startNodeProcess({
        script,
        isWatched,
        adminUrl,
        // The process ends itself shortly before it would be killed.
        env: { ...env, ...more, SHUTDOWN_DEADLINE_MS: String(stopDeadlineMs - 200) },
        signal,
        log: line => log(name, line),
      }),
  })
  return [
    unit('edge', 'deploy/local/edge.ts', adminUrls.ingest, 0, 1_200),
    unit('api', 'api/main.ts', adminUrls.api, 1, 800),
    unit('workers', 'workers/main.ts', adminUrls.workers, 2, 1_500, { PUBLIC_URL: env.PUBLIC_URL || baseUrl }),
  ]
}

/** Returns the environment of the processes: the inherited one, with the addresses and keys of this start. */
export function processEnvironment(
  inherited: Record<string, string | undefined>,
  config: LocalConfig,
  secrets: LocalSecrets,
  access: ServiceAccess,
): Record<string, string | undefined> {
  // The developer's own AWS session must not be mixed with the keys of the local S3.
  const aws = config.S3_ENDPOINT
    ? {}
    : { AWS_SESSION_TOKEN: undefined, AWS_PROFILE: undefined, S3_PUBLIC_ENDPOINT: undefined }
  const auth = inherited.AUTH_JWKS_URL
    ? {}
    : {
        AUTH_PUBLIC_KEY: secrets.authPublicKey,
        AUTH_ISSUER,
        AUTH_AUDIENCE,
        AUTH_JWKS_URL: undefined,
        CONSOLE_ISSUER: localIssuerOf(config),
        CONSOLE_CLIENT_ID: undefined,
        CONSOLE_SCOPE: undefined,
        CONSOLE_AUDIENCE: undefined,
      }
  return {
    NODE_COMPILE_CACHE: join(config.LOCAL_DIR, 'compile-cache'),
    ...inherited,
    ...aws,
    ...auth,
    LOCAL_DIR: config.LOCAL_DIR,
    KEY_PEPPER: inherited.KEY_PEPPER || secrets.keyPepper,
    DELIVERY_KEY: inherited.DELIVERY_KEY || hash('sha256', `deliveries ${secrets.keyPepper}`, 'base64'),
    // A developer tries alerts with a program on this machine.
    DELIVERY_ALLOWED_RECEIVERS: inherited.DELIVERY_ALLOWED_RECEIVERS || '127.0.0.0/8,::1,localhost',
    BIND_HOST: config.BIND_HOST,
    ADMIN_BIND_HOST: config.ADMIN_BIND_HOST,
    // Enough for one machine, whatever its limit of open files is.
    MAX_CONNECTIONS: inherited.MAX_CONNECTIONS || '2000',
    LOG_LEVEL: config.LOG_LEVEL,
    INGEST_PORT: String(config.INGEST_PORT),
    INGEST_ADMIN_PORT: String(config.INGEST_ADMIN_PORT),
    INGEST_GRPC_PORT: String(grpcPortOf(config)),
    API_PORT: String(config.API_PORT),
    API_ADMIN_PORT: String(config.API_ADMIN_PORT),
    WORKERS_ADMIN_PORT: String(config.WORKERS_ADMIN_PORT),
    REDIS_URL: access.redisUrl,
    DIRECTORY_REDIS_URL: access.directoryRedisUrl,
    CLICKHOUSE_URL: access.clickhouse.url,
    CLICKHOUSE_USER: access.clickhouse.user,
    CLICKHOUSE_PASSWORD: access.clickhouse.password,
    CLICKHOUSE_DATABASE: access.clickhouse.database,
    S3_ENDPOINT: access.s3.endpoint,
    S3_REGION: access.s3.region,
    S3_BUCKET: access.s3.bucket,
    ...(access.s3.accessKeyId && {
      AWS_ACCESS_KEY_ID: access.s3.accessKeyId,
      AWS_SECRET_ACCESS_KEY: access.s3.secretAccessKey,
    }),
  }
}

/** Options of `startNodeProcess`. */
interface NodeProcessOptions {
  /** Path of the script in the checkout. */
  script: string
  /** Whether Node starts it again when a file changes that it has imported (`npm run dev`). */
  isWatched?: boolean
  env: Record<string, string | undefined>
  /** Address whose `/readyz` reports when the process is ready. */
  adminUrl: string
  log: LineLog
  signal: AbortSignal
}

const END_WITH_PARENT = fileURLToPath(new URL('end-with-parent.mjs', import.meta.url))

const WATCH = ['--watch', '--watch-preserve-output']

/** Starts one of the service's processes with this Node, and waits until its `/readyz` returns 200. */
export async function startNodeProcess(options: NodeProcessOptions): Promise<ChildProcess> {
  const child = await startChild({
    command: process.execPath,
    args: [...(options.isWatched ? WATCH : []), '--import', END_WITH_PARENT, options.script],
    cwd: ROOT,
    env: options.env,
    log: options.log,
  })
  let reason = ''
  const isReady = async () => {
    const response = await fetch(`${options.adminUrl}/readyz`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(1_000),
    })
    reason = await response.text()
    return response.status === 200
  }
  await untilReady(options.script, child, isReady, { signal: options.signal }).catch(error => {
    throw reason === '' ? error : new Error(`${errorMessage(error)} (${reason.trim()})`)
  })
  return child
}
