import { Redis } from 'ioredis'
import { freePort } from '../../deploy/local/ports.ts'
import { QUEUES, type Signal } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import { createDirectory, newId } from '../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { startProcess } from './start-process.ts'
import type { BenchClickHouse, BenchRedis } from './start-stores.ts'
import { BENCH_DATABASE } from './start-stores.ts'

/** Databases of the bench's Redis. Emptying the queues leaves the keys of the surface in the other database. */
const QUEUE_DATABASE = 0
export const DIRECTORY_DATABASE = 1

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
  readonly grpcPort: number
  /** Address of `/metrics`. */
  readonly adminUrl: string
  readonly publicKey: string
  readonly queueDatabase: number
}

/** Starts the edge like `npm run ingest`, with one surface. `settings` are environment variables. */
export async function startEdge(
  context: ScenarioContext,
  redis: BenchRedis,
  settings: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<BenchEdge> {
  const [port, adminPort, grpcPort] = [await freePort(), await freePort(), await freePort()]
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const { publicKey } = await issueSurface(redis)
  const child = await startProcess(context, {
    script: 'ingest/main.ts',
    args,
    env: {
      REDIS_URL: redis.url(QUEUE_DATABASE),
      DIRECTORY_REDIS_URL: redis.url(DIRECTORY_DATABASE),
      INGEST_PORT: String(port),
      INGEST_ADMIN_PORT: String(adminPort),
      INGEST_GRPC_PORT: String(grpcPort),
      ...settings,
    },
    readyUrl: `${adminUrl}/readyz`,
  })
  return { pid: child.pid, port, grpcPort, adminUrl, publicKey, queueDatabase: QUEUE_DATABASE }
}

/** Returns the pools that store a signal. Exceptions of spans and log records may have a queue of their own. */
export function poolsOfSignal(signal: Signal, queues: readonly string[] = QUEUES): string[] {
  return [signal, ...(signal === 'metrics' ? [] : ['exceptions'])].filter(pool => queues.includes(pool))
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

/** Creates a surface with a public key, in a workspace of its own unless one is named, in the directory that every edge reads. */
export async function issueSurface(
  redis: BenchRedis,
  database: number = DIRECTORY_DATABASE,
  workspaceId: string = newId('ws'),
): Promise<BenchSurface> {
  const directory = new Redis(redis.url(database))
  const publicKey = generateKey('public')
  const [surfaceId, createdAt] = [newId('srf'), new Date().toISOString()]
  try {
    const store = createDirectory(directory)
    await store.putSurface({ version: 1, id: surfaceId, workspaceId, name: 'bench', createdAt })
    await store.putSurfaceKey({
      version: 1,
      id: newId('key'),
      kind: 'public',
      digest: digestOf(publicKey),
      prefix: publicKey.slice(3, 6),
      workspaceId,
      surfaceId,
      scopes: [],
      createdAt,
      expiresAt: null,
      revokedAt: null,
    })
    return { publicKey, workspaceId }
  } finally {
    directory.disconnect()
  }
}
