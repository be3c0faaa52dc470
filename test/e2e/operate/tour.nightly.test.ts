import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { ROOT } from '../../../deploy/local/config.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import type { ChildProcess } from '../../../deploy/local/processes/child-process.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { DECODER_VERSION } from '../../../workers/decode/decoder-version.ts'
import { type Clients, startClients } from '../../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../../support/chaos/compare-ledger.ts'
import { changedTree } from '../../support/chaos/product-tree.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import { type OperatePage, openPage } from '../../support/operate/page.ts'
import { startUnit, variablesOf } from '../../support/operate/units.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { call } from '../../support/services/api.ts'
import { issueKey } from '../../support/services/edge.ts'
import {
  keepRestartable,
  SERVER_PASSWORD,
  type Services,
  s3Settings,
  startServices,
  type TestService,
} from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

/** The newer version is this one with another number of its decoders. A released version takes the place of this one. */
const NEWER = {
  file: 'workers/decode/decoder-version.ts',
  changes: [[`= ${DECODER_VERSION}\n`, `= ${DECODER_VERSION + 1}\n`]],
} as const
const INSTANCES = ['edge', 'workers-1', 'workers-2', 'api'] as const
type Instance = (typeof INSTANCES)[number]
const EDGE = 'test/support/operate/edge-in-the-past.ts'
/** Requests of each kind a second. */
const RATE = 3
const SERVED_MS = 60_000
const SETTLE_DEADLINE_MS = 120_000
const STOP_DEADLINE_MS = 30_000

let services: Services
let directory: TestService
let etc: string
const running = new Map<Instance, ChildProcess>()
let clients: Clients | undefined

beforeAll(async () => {
  services = await startServices()
  const options = { dir: join(services.dir, 'directory'), port: await freePort(), password: SERVER_PASSWORD }
  directory = await keepRestartable(() => startRedis({ ...options, log: () => {} }))
  etc = join(services.dir, 'etc')
})

afterAll(async () => {
  await clients?.stop()
  for (const child of running.values()) await child.kill9()
  await directory?.stop()
  await services?.stop()
})

/** Starts a process of the installation. Requests arrive hours ago, because an audit judges hours that have passed. */
async function start(instance: Instance, hoursAgo = 3, tree = ROOT): Promise<void> {
  const past = { SCRIPT: join(tree, EDGE), ARRIVED_AGO_MS: String(hoursAgo * HOUR_MS) }
  running.set(
    instance,
    await startUnit({ instance, etc, tree, env: { LOG_LEVEL: 'fatal', ...(instance === 'edge' ? past : {}) } }),
  )
}

/** Ends a process as systemd does, and starts it again from a checkout. */
async function replace(instance: Instance, tree = ROOT): Promise<void> {
  const child = running.get(instance)
  await child?.stop(STOP_DEADLINE_MS)
  expect(await child?.exited).toEqual({ code: 0, signal: null })
  await start(instance, 3, tree)
}

/** Sends an export without a record, and returns the status of its answer; 0 if there is none. */
async function sendEmptyExport(edgeUrl: string, publicKey: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-service-public-key': publicKey }
  const init = { method: 'POST', headers, body: '{"resourceLogs":[]}' }
  const response = await fetch(`${edgeUrl}/drain/v1/logs`, init).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.status ?? 0
}

/** Returns the workspace that the page has created, with a key for builds. */
async function readSecrets(publicKey: string): Promise<LocalSecrets> {
  const redis = new Redis(directory.url)
  const store = createDirectory(redis)
  try {
    for await (const { id: workspaceId } of store.workspaces()) {
      const [surfaceId = ''] = await store.surfaceIds(workspaceId)
      const secretKey = await issueKey(store, { kind: 'secret', scopes: ['release:write'], workspaceId, surfaceId })
      // Clients and the ledger use only these.
      return { workspaceId, surfaceId, publicKey, secretKey } as LocalSecrets
    }
    throw new Error('the page has created no workspace')
  } finally {
    redis.disconnect()
  }
}

/** Returns the RTO that a page states for a store, in ms. */
async function rtoOf(store: string): Promise<number> {
  const page = await readFile(join(ROOT, 'docs/operate/losing-a-store.md'), 'utf8')
  const minutes = new RegExp(`^\\| ${store} \\|[^|]*\\| (\\d+) minutes`, 'm').exec(page)?.[1]
  if (minutes === undefined) throw new Error(`no RTO is stated for ${store}`)
  return Number(minutes) * MINUTE_MS
}

/** Waits until a request that is sent from now on is answered 503, or not at all. */
function untilRefused(): Promise<unknown> {
  const { entries } = (clients as Clients).ledger
  const before = entries.length
  return until('requests are refused', () => entries.slice(before).some(({ answer }) => answer === '503'), {
    deadlineMs: SERVED_MS,
  })
}

/** Takes a store away, waits until that shows, brings it back, and expects that clients are served within the RTO. */
async function lose(store: string, service: TestService, shows: () => Promise<unknown>): Promise<void> {
  await service.kill9()
  await shows()
  await service.restart()
  await (clients as Clients).untilServed(await rtoOf(store))
}

/** Loses the directory with its disk, and restores its backup. */
async function loseDirectory(page: OperatePage, send: () => Promise<number>): Promise<void> {
  await directory.kill9()
  await rm(join(services.dir, 'directory'), { recursive: true })
  await directory.restart()
  await until('requests are refused', async () => (await send()) === 503, { deadlineMs: SERVED_MS })
  await page.run('The directory')
  await until('requests are accepted', async () => (await send()) === 200, { deadlineMs: await rtoOf('directory') })
}

it('an installation is brought up, broken, restored, upgraded and rolled back by the pages, with an exact ledger', async () => {
  const ports = await Promise.all(Array.from({ length: 7 }, () => freePort()))
  const [ingest = 0, grpc = 0, apiPort = 0, ...admin] = ports
  const stores = {
    REDIS_URL: services.redisUrl,
    DIRECTORY_REDIS_URL: directory.url,
    CLICKHOUSE_URL: services.clickhouseUrl,
  }
  const page = await openPage('install.md', {
    ...stores,
    ...s3Settings(services.s3),
    ETC: etc,
    INGEST_PORT: String(ingest),
    INGEST_GRPC_PORT: String(grpc),
    API_PORT: String(apiPort),
    ADMIN_PORTS: admin.join(' '),
  })
  await page.run('1. Settings')
  await page.run('2. Migrate')
  for (const instance of INSTANCES) await start(instance, 4)
  await page.run('3. Start')
  await page.run('4. The first workspace')
  expect(page.left()).toEqual([])

  const edgeUrl = `http://127.0.0.1:${ingest}`
  const secrets = await readSecrets((await readFile(join(etc, 'public.key'), 'utf8')).trim())
  // The first hour in which requests are counted is not judged.
  const send = () => sendEmptyExport(edgeUrl, secrets.publicKey)
  expect(await send()).toBe(200)
  await replace('edge')
  const from = Math.floor((Date.now() - 3 * HOUR_MS) / HOUR_MS) * HOUR_MS
  const span = { FROM: new Date(from).toISOString(), TO: new Date(from + 2 * HOUR_MS).toISOString() }
  const settings = { ...variablesOf(await readFile(join(etc, 'all.env'), 'utf8')), ...span }
  const lost = await openPage('losing-a-store.md', settings)
  expect(await runDirectoryCli(['directory', 'backup'], { env: settings })).toMatchObject({ code: 0 })
  await loseDirectory(lost, send)

  clients = startClients({ edgeUrls: [edgeUrl], secrets, seed: 1, rate: RATE })
  await clients.untilServed(SERVED_MS)
  await breakAndRestore(lost, clients)
  const bearer = (await readFile(join(etc, 'session.token'), 'utf8')).trim()
  expect(await call(`http://127.0.0.1:${apiPort}`, 'GET /v3/surfaces', { bearer })).toMatchObject({ status: 200 })

  const upgrade = await openPage('upgrade.md', { ...settings, ADMIN_URL: `http://127.0.0.1:${admin[1]}` })
  await upgradeAndGoBack(upgrade, clients)
  await clients.stop()
  await expectExactLedger(clients, secrets)
  await upgrade.run('Check that nothing is lost')
  expect(upgrade.left()).toEqual([])
}, 900_000)

/** Loses each other store once, whose disk stays. */
async function breakAndRestore(page: OperatePage, { untilServed }: Clients): Promise<void> {
  await lose('queues', services.redis, untilRefused)
  await lose('ClickHouse', services.clickhouse, () => page.run('ClickHouse'))
  await lose('bucket', services.s3Server, () => untilServed(SERVED_MS))
  await page.run('The bucket')
  expect(page.left()).toEqual([])
}

/** Replaces every process by one of a newer version, and back, in the order of the page. */
async function upgradeAndGoBack(page: OperatePage, { untilServed }: Clients): Promise<void> {
  const newer = await changedTree(NEWER)
  try {
    await page.run('0. Which version runs')
    await page.run('1. Read and back up')
    await page.run('2. Migrate')
    for (const instance of ['workers-1', 'workers-2', 'edge', 'api'] as const) await replace(instance, newer.path)
    await page.run('3. Replace workers, then edges and API')
    await untilServed(SERVED_MS)
    for (const instance of ['edge', 'api', 'workers-1', 'workers-2'] as const) await replace(instance)
    await page.run('Go back')
    await untilServed(SERVED_MS)
  } finally {
    await newer.remove()
  }
}

async function expectExactLedger({ ledger, builds }: Clients, secrets: LocalSecrets): Promise<void> {
  const [redis, directoryRedis] = [new Redis(services.redisUrl), new Redis(directory.url)]
  const clickhouse = createClickHouse({ url: services.clickhouseUrl, database: 'penstock' })
  try {
    for (const build of builds.sent)
      if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
    await untilSettled({ queues: onOneServer(redis) }, SETTLE_DEADLINE_MS)
    const state = { redis, directory: directoryRedis, clickhouse, s3: services.s3, secrets }
    expect(await compareLedger(state, ledger, builds.sent)).toEqual([])
  } finally {
    redis.disconnect()
    directoryRedis.disconnect()
    await clickhouse.close()
  }
}
