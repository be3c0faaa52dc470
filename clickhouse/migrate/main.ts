import { parseArgs } from 'node:util'
import { connectConsumer } from '../../shared/queue/redis.ts'
import { runningWorkers } from '../../shared/queue/watch/worker-heartbeats.ts'
import { answerVersion, BUILD } from '../../shared/runtime/build-info.ts'
import { parseConfig, tableSettingsOf } from '../../shared/runtime/config.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import { createLogger } from '../../shared/runtime/logger.ts'
import { createClickHouse } from '../client.ts'
import { clusterOf } from '../connect.ts'
import type { ClusterServer } from './check-cluster.ts'
import { SchemaError, serverDifferences } from './compare-schema.ts'
import { migrateConfigSchema } from './config.ts'
import { MIGRATION_TIMEOUT_MS, migrate } from './migrate.ts'
import { migrateCluster } from './migrate-cluster.ts'
import { MIGRATIONS, readMigrations } from './migration-files.ts'

/**
 * Entry point of `npm run migrate`: migrates ClickHouse to the schema of this checkout, or exits with 1. A migration that needs
 * quiet is refused while workers run, unless `--force` is given. With `--check` nothing is changed. Exits with 3 if the schema is
 * another one than the migrations make; without `--check` only if it cannot be repaired.
 */
answerVersion()
const { values } = parseArgs({
  options: { force: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const config = parseConfig(migrateConfigSchema, process.env)
const logger = createLogger('migrate', config.LOG_LEVEL)
logger.info(BUILD, 'starting')
const access = { user: config.CLICKHOUSE_USER, password: config.CLICKHOUSE_PASSWORD }
// Without the database, which migrations create.
const connect = (url: string) => createClickHouse({ url, ...access, requestTimeoutMs: MIGRATION_TIMEOUT_MS })

/** The exit code for a schema that differs. */
const DIFFERS = 3
const REDIS_DEADLINE_MS = 10_000

async function findWorkers(): Promise<string[]> {
  const redis = connectConsumer(config.REDIS_URL, logger)
  try {
    return await withDeadline(runningWorkers(redis), REDIS_DEADLINE_MS, 'Redis does not answer')
  } catch (error) {
    const advice = 'check REDIS_URL, or migrate with --force if no workers run'
    throw new TransientError(`cannot find out whether workers run: ${advice}`, { cause: error })
  } finally {
    redis.disconnect()
  }
}

const options = {
  database: config.CLICKHOUSE_DATABASE,
  retentionDays: config.RETENTION_DAYS,
  tableSettings: tableSettingsOf(config),
  logger,
  ...(!values.force && { runningWorkers: findWorkers }),
}

/** Migrates. With `--check`, only returns how the schema differs, one text for each difference. */
async function run(): Promise<readonly string[]> {
  const cluster = clusterOf(config)
  const addresses = cluster?.addresses ?? [[config.CLICKHOUSE_URL]]
  const servers = addresses.flatMap((replicas, shard) =>
    replicas.map((url, replica) => ({ shard, replica, host: new URL(url).host, client: connect(url) })),
  )
  try {
    if (values.check) return await check(servers, cluster !== undefined)
    if (cluster !== undefined) await migrateCluster(servers, { ...options, cluster })
    else for (const { client } of servers) await migrate(client, options)
    return []
  } finally {
    await Promise.all(servers.map(({ client }) => client.close()))
  }
}

async function check(servers: readonly ClusterServer[], isCluster: boolean): Promise<string[]> {
  const migrations = await readMigrations(MIGRATIONS)
  const ofServers = servers.map(async server => {
    const differences = await serverDifferences(server, { database: options.database, isCluster }, migrations)
    return differences.map(({ text }) => `${server.host}: ${text}`)
  })
  return (await Promise.all(ofServers)).flat()
}

function report(differences: readonly string[]): void {
  for (const text of differences) logger.error(text)
  process.exitCode = DIFFERS
}

try {
  const differences = await run()
  if (differences.length > 0) report(differences)
  else logger.info({ database: config.CLICKHOUSE_DATABASE }, 'the schema is up to date')
} catch (error) {
  if (error instanceof SchemaError) report(error.differences.map(({ text }) => text))
  logger.fatal(errorFields(error), 'migration failed')
  process.exitCode ??= 1
}
