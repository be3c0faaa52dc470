import { Redis } from 'ioredis'
import { freePort } from '../../deploy/local/ports.ts'
import { MIB } from '../../schemas/units.ts'
import { createDirectory, type Directory, newId } from '../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { startProcess } from './start-process.ts'
import type { BenchClickHouse, BenchRedis } from './start-stores.ts'
import { BENCH_DATABASE } from './start-stores.ts'

/** Databases of the bench's Redis. Emptying the queues leaves the keys of the surface in the other database. */
const QUEUE_DATABASE = 0
const DIRECTORY_DATABASE = 1

const STOP_DEADLINE_MS = 10_000

/** The limit of a queue: some seconds of work, so that workers never wait for clients that retry after a second. */
export const QUEUE_LIMITS = { QUEUE_MAX_COST: String(2048 * MIB) }

/** Settings of an edge that is measured without workers: it must refuse nothing. */
export const QUEUES_UNBOUNDED = {
  QUEUE_MAX_COST: '4000000000000',
  REDIS_MAX_MEMORY_SHARE: '1',
}

/** A running edge with one surface. */
export interface BenchEdge {
  readonly pid: number
  readonly port: number
  /** Address of `/metrics`. */
  readonly adminUrl: string
  readonly publicKey: string
  readonly queueDatabase: number
  /** Ends the process before the scenario ends. */
  stop(): Promise<void>
}

/** Starts the edge like `npm run ingest`, with one surface. `settings` are environment variables. */
export async function startEdge(
  context: ScenarioContext,
  redis: BenchRedis,
  settings: Readonly<Record<string, string>> = {},
): Promise<BenchEdge> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const [{ publicKey }] = (await issueSurfaces(redis, 1, 1)) as [BenchSurface]
  const child = await startProcess(context, {
    script: 'ingest/main.ts',
    env: {
      REDIS_URL: redis.url(QUEUE_DATABASE),
      DIRECTORY_REDIS_URL: redis.url(DIRECTORY_DATABASE),
      INGEST_PORT: String(port),
      INGEST_ADMIN_PORT: String(adminPort),
      ...settings,
    },
    readyUrl: `${adminUrl}/readyz`,
  })
  const stop = () => child.stop(STOP_DEADLINE_MS)
  return { pid: child.pid, port, adminUrl, publicKey, queueDatabase: QUEUE_DATABASE, stop }
}

/** A running workers process. */
export interface BenchWorkers {
  readonly pid: number
  readonly adminUrl: string
  /** Ends the process before the scenario ends. Its batches are stored first. */
  stop(): Promise<void>
}

/** Starts one workers process like `npm run workers`. */
export async function startWorkers(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
  pools: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<BenchWorkers> {
  const adminPort = await freePort()
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const child = await startProcess(context, {
    script: 'workers/main.ts',
    args: ['--pools', pools.join(',')],
    env: {
      REDIS_URL: redis.url(QUEUE_DATABASE),
      DIRECTORY_REDIS_URL: redis.url(DIRECTORY_DATABASE),
      CLICKHOUSE_URL: clickhouse.url,
      CLICKHOUSE_DATABASE: BENCH_DATABASE,
      WORKERS_ADMIN_PORT: String(adminPort),
      ...settings,
    },
    readyUrl: `${adminUrl}/readyz`,
  })
  return { pid: child.pid, adminUrl, stop: () => child.stop(STOP_DEADLINE_MS) }
}

/** A surface with its public key. */
export interface BenchSurface {
  readonly publicKey: string
  readonly workspaceId: string
}

/** Creates `count` surfaces, each with a public key that every edge accepts, in workspaces of this size. */
export async function issueSurfaces(redis: BenchRedis, count: number, perWorkspace: number): Promise<BenchSurface[]> {
  const directory = new Redis(redis.url(DIRECTORY_DATABASE))
  try {
    const store = createDirectory(directory)
    const workspaces = Array.from({ length: Math.ceil(count / perWorkspace) }, () => newId('ws'))
    return await Promise.all(
      Array.from({ length: count }, (_, i) => issueSurface(store, workspaces[Math.floor(i / perWorkspace)] as string)),
    )
  } finally {
    directory.disconnect()
  }
}

/** Creates a surface with a public key. */
export async function issueSurface(store: Directory, workspaceId: string): Promise<BenchSurface> {
  const publicKey = generateKey('public')
  await store.putSurfaceKey({
    version: 1,
    id: newId('key'),
    kind: 'public',
    digest: digestOf(publicKey),
    prefix: publicKey.slice(3, 6),
    workspaceId,
    surfaceId: newId('srf'),
    scopes: [],
    createdAt: new Date().toISOString(),
    expiresAt: null,
    revokedAt: null,
  })
  return { publicKey, workspaceId }
}
