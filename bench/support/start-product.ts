import { Redis } from 'ioredis'
import { freePort } from '../../deploy/local/ports.ts'
import { createControlStore, newId } from '../../shared/control-store.ts'
import { digestOf, generateKey } from '../../shared/credentials.ts'
import type { ScenarioContext } from './scenario.ts'
import { startProcess } from './start-process.ts'
import type { BenchClickHouse, BenchRedis } from './start-stores.ts'
import { BENCH_DATABASE } from './start-stores.ts'

/** Databases of the bench's Redis: emptying one leaves the keys of the surface in the other. */
const QUEUE_DATABASE = 0
const CONTROL_DATABASE = 1

export interface BenchEdge {
  readonly pid: number
  readonly port: number
  readonly publicKey: string
  readonly queueDatabase: number
}

/** The product's edge as `npm run ingest` runs it, with one surface. `settings` are its environment variables. */
export async function startEdge(
  context: ScenarioContext,
  redis: BenchRedis,
  settings: Readonly<Record<string, string>> = {},
): Promise<BenchEdge> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const publicKey = await issuePublicKey(redis.url(CONTROL_DATABASE))
  const child = await startProcess(context, {
    script: 'ingest/main.ts',
    env: {
      REDIS_URL: redis.url(QUEUE_DATABASE),
      CONTROL_REDIS_URL: redis.url(CONTROL_DATABASE),
      INGEST_PORT: String(port),
      INGEST_ADMIN_PORT: String(adminPort),
      ...settings,
    },
    readyUrl: `http://127.0.0.1:${adminPort}/readyz`,
  })
  return { pid: child.pid, port, publicKey, queueDatabase: QUEUE_DATABASE }
}

/** The product's workers as `npm run workers` runs them. */
export async function startWorkers(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
  pools: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<{ pid: number; adminUrl: string }> {
  const adminPort = await freePort()
  const adminUrl = `http://127.0.0.1:${adminPort}`
  const child = await startProcess(context, {
    script: 'workers/main.ts',
    args: ['--pools', pools.join(',')],
    env: {
      REDIS_URL: redis.url(QUEUE_DATABASE),
      CLICKHOUSE_URL: clickhouse.url,
      CLICKHOUSE_DATABASE: BENCH_DATABASE,
      WORKERS_ADMIN_PORT: String(adminPort),
      ...settings,
    },
    readyUrl: `${adminUrl}/readyz`,
  })
  return { pid: child.pid, adminUrl }
}

async function issuePublicKey(controlUrl: string): Promise<string> {
  const redis = new Redis(controlUrl)
  try {
    const publicKey = generateKey('public')
    await createControlStore(redis).putSurfaceKey({
      version: 1,
      id: newId('key'),
      kind: 'public',
      digest: digestOf(publicKey),
      prefix: publicKey.slice(3, 6),
      workspaceId: newId('ws'),
      surfaceId: newId('srf'),
      scopes: [],
      createdAt: new Date().toISOString(),
      expiresAt: null,
      revokedAt: null,
    })
    return publicKey
  } finally {
    redis.disconnect()
  }
}
