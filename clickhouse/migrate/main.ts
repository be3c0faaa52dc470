import { connectConsumer } from '../../shared/queue/redis.ts'
import { runningWorkers } from '../../shared/queue/watch/worker-heartbeats.ts'
import { tableSettingsOf } from '../../shared/runtime/config.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import { openProcess } from '../../shared/runtime/process/open-process.ts'
import { createClickHouse } from '../client.ts'
import { clusterOf } from '../connect.ts'
import { migrateConfigSchema } from './config.ts'
import { MIGRATION_TIMEOUT_MS, migrate } from './migrate.ts'
import { migrateCluster } from './migrate-cluster.ts'

/**
 * Entry point of `npm run migrate`: migrates ClickHouse to the schema of this checkout, or exits with 1. A migration that needs
 * quiet is refused while workers run, unless `--force` is given.
 */
const { config, values, logger } = openProcess({
  name: 'migrate',
  schema: migrateConfigSchema,
  env: process.env,
  usage: 'migrate [--force] [--version] [--help]',
  options: { force: { type: 'boolean', default: false } },
})
const access = { user: config.CLICKHOUSE_USER, password: config.CLICKHOUSE_PASSWORD }
// Without the database, which migrations create.
const connect = (url: string) => createClickHouse({ url, ...access, requestTimeoutMs: MIGRATION_TIMEOUT_MS })

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

async function migrateAll(): Promise<void> {
  const cluster = clusterOf(config)
  const addresses = cluster?.addresses ?? [[config.CLICKHOUSE_URL]]
  const servers = addresses.flatMap((replicas, shard) =>
    replicas.map((url, replica) => ({ shard, replica, host: new URL(url).host, client: connect(url) })),
  )
  try {
    if (cluster !== undefined) await migrateCluster(servers, { ...options, cluster })
    else for (const { client } of servers) await migrate(client, options)
  } finally {
    await Promise.all(servers.map(({ client }) => client.close()))
  }
}

try {
  await migrateAll()
  logger.info({ database: config.CLICKHOUSE_DATABASE }, 'the schema is up to date')
} catch (error) {
  logger.fatal(errorFields(error), 'migration failed')
  process.exitCode = 1
}
