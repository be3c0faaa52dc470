import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import type { ChildProcess } from '../../../deploy/local/processes/child-process.ts'
import { startNodeProcess } from '../../../deploy/local/processes/processes.ts'
import { provision } from '../../../deploy/local/workspace/provision.ts'
import { type LocalSecrets, loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { startBalancer } from '../chaos/balancer.ts'
import { type Clients, startClients } from '../chaos/clients.ts'
import { compareLedger, untilSettled } from '../chaos/compare-ledger.ts'
import { onOneServer } from '../queue-on.ts'
import { startEdge, type TestEdge } from '../services/edge.ts'
import { type S3Access, type Services, s3Settings, startServices } from '../services/services.ts'
import { type OperatePage, openPage } from './page.ts'

/** An installation under load, with which a test does what a page of docs/operate says. */
export interface OperatedInstallation {
  readonly services: Services
  /** Settings of the processes. A process that starts has those of this time, so a test changes them as an operator does. */
  readonly settings: Record<string, string>
  readonly clients: Clients
  /** Address of the edges for clients. */
  readonly edgeUrl: string
  /** Address of the admin port of the workers. */
  readonly adminUrl: string
  startEdge(): Promise<void>
  stopEdge(): Promise<void>
  /** Starts an edge with the current settings, then stops the one before, as behind a load balancer. */
  replaceEdge(): Promise<void>
  startWorkers(): Promise<void>
  /** Stops the workers as SIGTERM does, and expects that they end in time. */
  stopWorkers(): Promise<void>
  killWorkers(): Promise<void>
  /**
   * Waits until everything that was accepted is settled. Expects that it is what the clients know, in the stores of the current
   * settings. `expected` matches differences that the page has made on purpose.
   */
  expectExactLedger(expected?: RegExp): Promise<void>
  /** Expects an exact ledger, and that the page's audit, below its heading, finds nothing missing. */
  expectNothingLost(page: OperatePage, options?: { expected?: RegExp; heading?: string }): Promise<void>
  /** Secrets of the one workspace, and keys of its clients. */
  readonly secrets: LocalSecrets
  /** Opens a page with the settings and these variables. */
  openPage(name: string, env?: Readonly<Record<string, string>>): Promise<OperatePage>
  stop(): Promise<void>
}

/** Requests of each kind a second. */
const RATE = 3
const SEED = 1
const SETTLE_DEADLINE_MS = 180_000
const STOP_DEADLINE_MS = 45_000
const WORKERS_SETTINGS = {
  // A busy machine does not renew shorter locks in time.
  JOB_LOCK_MS: '10000',
  JOB_STALLED_CHECK_MS: '2000',
  SWEEP_INTERVAL_MS: '1000',
  // A quarter of it is for inserts that were begun, however slow this machine is.
  SHUTDOWN_DEADLINE_MS: '40000',
  LOG_LEVEL: 'fatal',
}

/** Heading of the step of most pages that looks for losses. */
const CHECK = 'Check that nothing is lost'

/**
 * Starts servers, edge, workers and clients of every kind. Requests arrive in an hour that has passed, because an audit judges
 * no other.
 */
export async function startOperatedInstallation(): Promise<OperatedInstallation> {
  const services = await startServices()
  const onStop: (() => unknown)[] = [() => services.stop()]
  const stop = async () => {
    for (const end of onStop.splice(0).reverse()) await end()
  }
  try {
    return { ...(await start(services, end => onStop.push(end))), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(
  services: Services,
  onStop: (end: () => unknown) => void,
): Promise<Omit<OperatedInstallation, 'stop'>> {
  const secrets = await loadSecrets(services.dir)
  const settings: Record<string, string> = {
    REDIS_URL: services.redisUrl,
    DIRECTORY_REDIS_URL: services.redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    CLICKHOUSE_DATABASE: 'penstock',
    KEY_PEPPER: secrets.keyPepper,
    NODE_COMPILE_CACHE: join(services.dir, 'compile-cache'),
    ...s3Settings(services.s3),
  }
  await withRedis(settings, redis => provision(createDirectory(redis), secrets))
  const clickhouse = createClickHouse({ url: services.clickhouseUrl })
  await migrate(clickhouse, { database: 'penstock', retentionDays: 30, logger: pino({ level: 'silent' }) })
  await clickhouse.close()

  const hour = (Math.floor(Date.now() / HOUR_MS) - 3) * HOUR_MS
  let arrivedAt = hour - HOUR_MS
  let edge: TestEdge | undefined
  let workers: ChildProcess | undefined
  const adminPort = await freePort()
  const adminUrl = `http://127.0.0.1:${adminPort}`

  const balancer = await startBalancer()
  onStop(() => balancer.close())

  async function startNextEdge(): Promise<void> {
    edge = await startEdge(settings.REDIS_URL ?? '', settings, pino({ level: 'silent' }), () => arrivedAt)
    balancer.add(edge.port)
  }
  async function stop(stopped: TestEdge | undefined): Promise<void> {
    if (stopped === undefined) return
    await balancer.drain(stopped.port)
    await stopped.stop()
  }
  async function startWorkers(): Promise<void> {
    workers = await startNodeProcess({
      script: 'workers/main.ts',
      env: { PATH: process.env.PATH, ...WORKERS_SETTINGS, ...settings, WORKERS_ADMIN_PORT: String(adminPort) },
      adminUrl,
      log: line => process.env.STACK_LOG && console.log(line),
      signal: new AbortController().signal,
    })
  }

  await startNextEdge()
  onStop(() => edge?.stop())
  await startWorkers()
  onStop(() => workers?.kill9())
  await sendEmptyExport(balancer.url, secrets.publicKey)
  arrivedAt = hour
  const clients = startClients({ edgeUrls: [balancer.url], secrets, seed: SEED, rate: RATE })
  onStop(() => clients.stop())

  async function expectExactLedger(expected?: RegExp): Promise<void> {
    await clients.stop()
    const { sent } = clients.builds
    for (const build of sent.filter(build => build.isUploaded && !build.isCompleted))
      await clients.builds.complete(build)
    const directory = new Redis(settings.DIRECTORY_REDIS_URL ?? '')
    await withRedis(settings, async redis => {
      const s3 = accessOf(settings)
      const stored = createClickHouse({ url: settings.CLICKHOUSE_URL ?? '', database: 'penstock' })
      try {
        await untilSettled({ queues: onOneServer(redis) }, SETTLE_DEADLINE_MS)
        const state = { redis, directory, clickhouse: stored, s3, secrets }
        const differences = await compareLedger(state, clients.ledger, clients.builds.sent)
        expect(differences.filter(text => !expected?.test(text))).toEqual([])
      } finally {
        await stored.close()
        directory.disconnect()
      }
    })
  }

  return {
    services,
    secrets,
    settings,
    clients,
    edgeUrl: balancer.url,
    adminUrl,
    startEdge: startNextEdge,
    stopEdge: () => stop(edge),
    async replaceEdge() {
      const before = edge
      await startNextEdge()
      await stop(before)
    },
    startWorkers,
    async stopWorkers() {
      await workers?.stop(STOP_DEADLINE_MS)
      expect(await workers?.exited).toEqual({ code: 0, signal: null })
    },
    killWorkers: async () => workers?.kill9(),
    expectExactLedger,
    async expectNothingLost(page, { expected, heading = CHECK } = {}) {
      await expectExactLedger(expected)
      await page.run(heading, {
        ...settings,
        FROM: new Date(hour).toISOString(),
        TO: new Date(hour + HOUR_MS).toISOString(),
      })
      expect(page.left()).toEqual([])
    },
    openPage: (name, env = {}) => openPage(name, { ...settings, ...env }),
  }
}

/** Returns the object store of these settings. */
function accessOf(settings: Readonly<Record<string, string>>): S3Access {
  return {
    endpoint: settings.S3_ENDPOINT ?? '',
    region: 'us-east-1',
    bucket: settings.S3_BUCKET ?? '',
    accessKeyId: settings.AWS_ACCESS_KEY_ID ?? '',
    secretAccessKey: settings.AWS_SECRET_ACCESS_KEY ?? '',
  }
}

async function withRedis<T>(settings: Readonly<Record<string, string>>, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(settings.REDIS_URL ?? '')
  try {
    return await use(redis)
  } finally {
    redis.disconnect()
  }
}

/** Sends a request without a record, because the first hour in which requests are counted is not judged. */
async function sendEmptyExport(edgeUrl: string, publicKey: string): Promise<void> {
  const response = await fetch(`${edgeUrl}/drain/v1/logs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': publicKey },
    body: '{"resourceLogs":[]}',
  })
  await response.arrayBuffer()
  expect(response.status).toBe(200)
}
