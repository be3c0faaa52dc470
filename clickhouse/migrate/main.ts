import { parseArgs } from 'node:util'
import { connectConsumer } from '../../shared/queue/redis.ts'
import { runningWorkers } from '../../shared/queue/watch/worker-heartbeats.ts'
import { parseConfig, tableSettingsOf } from '../../shared/runtime/config.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import { createLogger } from '../../shared/runtime/logger.ts'
import { connectClickHouse } from '../connect.ts'
import { migrateConfigSchema } from './config.ts'
import { MIGRATION_TIMEOUT_MS, migrate } from './migrate.ts'

/**
 * Entry point of `npm run migrate`: migrates ClickHouse to the schema of this checkout, or exits with 1. A migration that needs
 * quiet is refused while workers run, unless `--force` is given.
 */
const { values } = parseArgs({ options: { force: { type: 'boolean', default: false } } })
const config = parseConfig(migrateConfigSchema, process.env)
const logger = createLogger('migrate', config.LOG_LEVEL)
const client = connectClickHouse(config, { withoutDatabase: true, requestTimeoutMs: MIGRATION_TIMEOUT_MS })

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

try {
  await migrate(client, {
    database: config.CLICKHOUSE_DATABASE,
    retentionDays: config.RETENTION_DAYS,
    tableSettings: tableSettingsOf(config),
    logger,
    ...(!values.force && { runningWorkers: findWorkers }),
  })
  logger.info({ database: config.CLICKHOUSE_DATABASE }, 'the schema is up to date')
} catch (error) {
  logger.fatal(errorFields(error), 'migration failed')
  process.exitCode = 1
} finally {
  await client.close()
}
