import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../../deploy/local/ports.ts'
import type { ChildExit, ChildProcess, LineLog } from '../../../deploy/local/processes/child-process.ts'
import { startNodeProcess } from '../../../deploy/local/processes/processes.ts'
import { provision } from '../../../deploy/local/workspace/provision.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, type LocalSecrets, loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { clusterSettings, migrateDatabase } from '../cluster/connect.ts'
import { startComposedStack } from '../containers/composed-stack.ts'
import { type Services, type ServicesOptions, s3Settings, startServices } from './services.ts'

const PROCESSES = { edge: 'ingest/main.ts', workers: 'workers/main.ts', api: 'api/main.ts' } as const
type ProcessName = keyof typeof PROCESSES

/** Process of the stack, which a test can kill and restart. */
interface StackProcess {
  readonly pid: number
  kill9(): Promise<void>
  /** Sends SIGTERM, and SIGKILL after the deadline; the exit shows which was necessary. */
  stop(deadlineMs?: number): Promise<ChildExit>
  restart(): Promise<void>
}

/** Every part of the product as a separate process on real services, with one workspace, surface and user. */
export interface Stack extends Record<ProcessName, StackProcess> {
  readonly services: Services
  readonly secrets: LocalSecrets
  readonly ingestUrl: string
  /** Address of OTLP/gRPC. */
  readonly grpcUrl: string
  readonly apiUrl: string
  /** Settings of the processes, with which a test starts another one. */
  readonly env: Readonly<Record<string, string | undefined>>
  stop(): Promise<void>
}

/** Options of `startStack`. */
interface StackOptions {
  readonly services?: ServicesOptions
  /** Returns settings that depend on the servers, such as other addresses for them. */
  readonly settingsOf?: (services: Services) => Promise<Readonly<Record<string, string>>>
  /** Settings of single processes. */
  readonly perProcess?: Partial<Record<ProcessName, Record<string, string>>>
  /** Receives each line of output, with the name of the process before it. */
  readonly log?: LineLog
}

/**
 * Starts the servers and every process of the product with these settings. In `npm run test:compose`, starts containers instead,
 * with the settings of test/support/containers/compose.local.yaml.
 */
export async function startStack(settings: Record<string, string> = {}, options: StackOptions = {}): Promise<Stack> {
  if (process.env.PENSTOCK_STACK === 'compose') return startComposedStack()
  const services = await startServices(options.services)
  const secrets = await loadSecrets(services.dir)
  const redis = new Redis(services.redisUrl)
  await provision(createDirectory(redis), secrets)
  redis.disconnect()
  await migrateDatabase(services.clickhouseUrl, 'penstock')

  const ports = { edge: await freePort(), grpc: await freePort(), workers: 0, api: await freePort() }
  const adminPorts = { edge: await freePort(), workers: await freePort(), api: await freePort() }
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: join(services.dir, 'compile-cache'),
    REDIS_URL: services.redisUrl,
    DIRECTORY_REDIS_URL: services.redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    ...clusterSettings(services.clickhouseUrl),
    ...s3Settings(services.s3),
    AUTH_PUBLIC_KEY: secrets.authPublicKey,
    AUTH_ISSUER,
    AUTH_AUDIENCE,
    KEY_PEPPER: secrets.keyPepper,
    INGEST_PORT: String(ports.edge),
    API_PORT: String(ports.api),
    INGEST_ADMIN_PORT: String(adminPorts.edge),
    INGEST_GRPC_PORT: String(ports.grpc),
    WORKERS_ADMIN_PORT: String(adminPorts.workers),
    API_ADMIN_PORT: String(adminPorts.api),
    LOG_LEVEL: 'warn',
    ...settings,
    ...(await options.settingsOf?.(services)),
  }

  async function startProcess(name: ProcessName): Promise<StackProcess> {
    const start = () =>
      startNodeProcess({
        script: PROCESSES[name],
        env: { ...env, ...options.perProcess?.[name] },
        adminUrl: `http://127.0.0.1:${adminPorts[name]}`,
        log: options.log
          ? line => options.log?.(`${name} ${line}`)
          : line => process.env.STACK_LOG && console.log(`${name} ${line}`),
        signal: new AbortController().signal,
      })
    let child: ChildProcess = await start()
    return {
      get pid() {
        return child.pid
      },
      kill9: () => child.kill9(),
      async stop(deadlineMs) {
        await child.stop(deadlineMs)
        return child.exited
      },
      async restart() {
        if (child.hasExited) child = await start()
      },
    }
  }

  const [edge, workers, api] = await Promise.all([startProcess('edge'), startProcess('workers'), startProcess('api')])
  return {
    services,
    secrets,
    env,
    edge,
    workers,
    api,
    ingestUrl: `http://127.0.0.1:${ports.edge}`,
    grpcUrl: `http://127.0.0.1:${ports.grpc}`,
    apiUrl: `http://127.0.0.1:${ports.api}`,
    async stop() {
      await Promise.all([edge.stop(), workers.stop(), api.stop()])
      await services.stop()
    },
  }
}
