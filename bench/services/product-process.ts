import { Redis } from 'ioredis'
import { freePort } from '../../deploy/local/ports.ts'
import { provision } from '../../deploy/local/workspace/provision.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, type LocalSecrets, loadSecrets } from '../../deploy/local/workspace/secrets.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { BENCH_DATABASE, type BenchClickHouse, type BenchRedis } from './start-stores.ts'

const PROCESSES = {
  edge: { script: 'ingest/main.ts', port: 'INGEST_PORT', adminPort: 'INGEST_ADMIN_PORT' },
  workers: { script: 'workers/main.ts', port: undefined, adminPort: 'WORKERS_ADMIN_PORT' },
  api: { script: 'api/main.ts', port: 'API_PORT', adminPort: 'API_ADMIN_PORT' },
} as const
export type ProductProcess = keyof typeof PROCESSES

/** A workspace with its surface and user, and what every process of the product needs to know. */
export interface ProductSetup {
  readonly secrets: LocalSecrets
  readonly env: Readonly<Record<string, string>>
}

/** Everything is as deploy/env.example has it, but for addresses. There is no object store: only dead letters need one. */
export async function setUpProduct(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
): Promise<ProductSetup> {
  const secrets = await loadSecrets(context.dir)
  const env = {
    REDIS_URL: redis.url(0),
    CONTROL_REDIS_URL: redis.url(1),
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_DATABASE: BENCH_DATABASE,
    AUTH_PUBLIC_KEY: secrets.authPublicKey,
    KEY_PEPPER: secrets.keyPepper,
    AUTH_ISSUER,
    AUTH_AUDIENCE,
  }
  const directory = new Redis(env.CONTROL_REDIS_URL)
  try {
    await provision(createDirectory(directory), secrets)
  } finally {
    directory.disconnect()
  }
  return { secrets, env }
}

/** How one process is started as its npm script does, on ports that are free now. */
export interface ProductLaunch {
  readonly script: string
  readonly env: Readonly<Record<string, string>>
  /** Of its clients; the workers have none. */
  readonly baseUrl: string
  readonly port: number
  readonly readyUrl: string
}

export async function planLaunch(name: ProductProcess, setup: ProductSetup): Promise<ProductLaunch> {
  const { script, port: portSetting, adminPort: adminSetting } = PROCESSES[name]
  const [port, adminPort] = [await freePort(), await freePort()]
  const ports = { ...(portSetting && { [portSetting]: String(port) }), [adminSetting]: String(adminPort) }
  return {
    script,
    env: { ...setup.env, ...ports },
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    readyUrl: `http://127.0.0.1:${adminPort}/readyz`,
  }
}
