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
/** Name of a product process. */
export type ProductProcess = keyof typeof PROCESSES

/** A workspace with its surface and user, and the environment that all product processes share. */
export interface ProductSetup {
  readonly secrets: LocalSecrets
  readonly env: Readonly<Record<string, string>>
}

/**
 * Creates the workspace. All settings except addresses have their defaults. There is no object store: only dead letters
 * need one.
 */
export async function setUpProduct(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
): Promise<ProductSetup> {
  const secrets = await loadSecrets(context.dir)
  const env = {
    REDIS_URL: redis.url(0),
    DIRECTORY_REDIS_URL: redis.url(1),
    CLICKHOUSE_URL: clickhouse.url,
    CLICKHOUSE_DATABASE: BENCH_DATABASE,
    AUTH_PUBLIC_KEY: secrets.authPublicKey,
    KEY_PEPPER: secrets.keyPepper,
    AUTH_ISSUER,
    AUTH_AUDIENCE,
  }
  const directory = new Redis(env.DIRECTORY_REDIS_URL)
  try {
    await provision(createDirectory(directory), secrets)
  } finally {
    directory.disconnect()
  }
  return { secrets, env }
}

/** Everything needed to start one process like its npm script does, on free ports. */
interface ProductLaunch {
  readonly script: string
  readonly env: Readonly<Record<string, string>>
  /** Address for clients. The workers have none. */
  readonly baseUrl: string
  readonly port: number
  readonly readyUrl: string
}

/** Chooses free ports and returns how to start the process. */
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
