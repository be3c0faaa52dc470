import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { grpcPortOf } from '../../ingest/config.ts'
import { GIB, MIB } from '../../schemas/units.ts'
import {
  clickhouseAddress,
  clickhouseSettings,
  count,
  migrationSettings,
  objectStoreSettings,
  parseConfig,
  port,
  processSettings,
  redisUrl,
} from '../../shared/runtime/config.ts'

/** The root directory of this checkout, or build/ of a package. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const RUN = existsSync(join(ROOT, 'package-lock.json')) ? 'npm run' : 'npx penstock'

/** Returns what to type in order to run this script, in a checkout or where a package is installed. */
export function commandFor(script: 'start' | 'demo' | 'console:link'): string {
  return `${RUN} ${script}`.replace('npm run start', 'npm start')
}

/** Settings of `npm start`. */
export const localSettings = z.object({
  ...processSettings,
  ...objectStoreSettings,
  ...clickhouseSettings,
  ...migrationSettings,
  /** Lower than that of `npm run migrate`: the ClickHouse that `npm start` starts has 4 GiB. */
  CLICKHOUSE_INSERTS_PER_SECOND: migrationSettings.CLICKHOUSE_INSERTS_PER_SECOND.default(1),
  /** Directory of data, keys and credentials between starts. A relative path starts at the checkout. */
  LOCAL_DIR: z.string().default('.local'),
  /** Address of an existing Redis. `npm start` then starts no Redis itself. */
  REDIS_URL: redisUrl.optional(),
  /**
   * Address of an existing Redis for the directory. Without it, `npm start` starts one of its own for the directory, or
   * uses REDIS_URL if that is set.
   */
  DIRECTORY_REDIS_URL: redisUrl.optional(),
  /** Address of an existing ClickHouse. `npm start` then starts no ClickHouse itself. */
  CLICKHOUSE_URL: clickhouseAddress.optional(),
  INGEST_PORT: port(4318),
  INGEST_ADMIN_PORT: port(4319),
  /** The port of OTLP/gRPC. Default: the one below INGEST_PORT. */
  INGEST_GRPC_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
  API_PORT: port(4300),
  API_ADMIN_PORT: port(4301),
  WORKERS_ADMIN_PORT: port(4302),
  REDIS_PORT: port(4379),
  /** Port of the Redis of the directory. Default: the first free one above REDIS_PORT. */
  DIRECTORY_REDIS_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
  CLICKHOUSE_PORT: port(4123),
  S3_PORT: port(4900),
  RETENTION_DAYS: count(30),
  /** `maxmemory` of the Redis of the queues that `npm start` starts, in the notation of Redis. */
  REDIS_MAX_MEMORY: z.string().default('2gb'),
  /** The same for the Redis of the directory and the releases. */
  DIRECTORY_REDIS_MAX_MEMORY: z.string().default('512mb'),
  /** Memory limit of the ClickHouse that `npm start` starts. */
  CLICKHOUSE_MEMORY_BYTES: z.coerce
    .number()
    .int()
    .min(512 * MIB)
    .default(4 * GIB),
})

/** Parsed settings of `npm start`. */
export type LocalConfig = Readonly<z.infer<typeof localSettings>>

/** Parses the environment. Throws a ConfigError that names every invalid setting. */
export function parseLocalConfig(env: Record<string, string | undefined>): LocalConfig {
  const config = parseConfig(localSettings, env)
  return { ...config, LOCAL_DIR: isAbsolute(config.LOCAL_DIR) ? config.LOCAL_DIR : join(ROOT, config.LOCAL_DIR) }
}

/** Returns true if this start has a Redis for the directory alone. With an external Redis of the queues it has none. */
export function hasDirectoryRedis(config: LocalConfig): boolean {
  return !config.REDIS_URL && !config.DIRECTORY_REDIS_URL
}

/** Returns the ports that this start will listen on, by the name of the setting that changes each of them. */
export function portsOf(config: LocalConfig): Map<string, { port: number; host: string }> {
  const own = ['INGEST_PORT', 'API_PORT'] as const
  const admin = ['INGEST_ADMIN_PORT', 'API_ADMIN_PORT', 'WORKERS_ADMIN_PORT'] as const
  const ports = new Map<string, { port: number; host: string }>()
  for (const name of own) ports.set(name, { port: config[name], host: config.BIND_HOST })
  ports.set('INGEST_GRPC_PORT', { port: grpcPortOf(config), host: config.BIND_HOST })
  for (const name of admin) ports.set(name, { port: config[name], host: config.ADMIN_BIND_HOST })
  if (!config.REDIS_URL) ports.set('REDIS_PORT', { port: config.REDIS_PORT, host: '127.0.0.1' })
  if (hasDirectoryRedis(config) && config.DIRECTORY_REDIS_PORT) {
    ports.set('DIRECTORY_REDIS_PORT', { port: config.DIRECTORY_REDIS_PORT, host: '127.0.0.1' })
  }
  if (!config.CLICKHOUSE_URL) ports.set('CLICKHOUSE_PORT', { port: config.CLICKHOUSE_PORT, host: '127.0.0.1' })
  if (!config.S3_ENDPOINT) ports.set('S3_PORT', { port: config.S3_PORT, host: '127.0.0.1' })
  return ports
}

/** Returns the host under which this machine reaches a server that is bound to `BIND_HOST`. */
export function reachableHost(bindHost: string): string {
  if (bindHost === '0.0.0.0' || bindHost === '::') return '127.0.0.1'
  return bindHost.includes(':') ? `[${bindHost}]` : bindHost
}
