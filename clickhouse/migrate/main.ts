import { parseConfig, tableSettingsOf } from '../../shared/runtime/config.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import { createLogger } from '../../shared/runtime/logger.ts'
import { connectClickHouse } from '../connect.ts'
import { migrateConfigSchema } from './config.ts'
import { MIGRATION_TIMEOUT_MS, migrate } from './migrate.ts'

/** Entry point of `npm run migrate`: migrates ClickHouse to the schema of this checkout, or exits with 1. */
const config = parseConfig(migrateConfigSchema, process.env)
const logger = createLogger('migrate', config.LOG_LEVEL)
const client = connectClickHouse(config, { withoutDatabase: true, requestTimeoutMs: MIGRATION_TIMEOUT_MS })

try {
  await migrate(client, {
    database: config.CLICKHOUSE_DATABASE,
    retentionDays: config.RETENTION_DAYS,
    tableSettings: tableSettingsOf(config),
    logger,
  })
  logger.info({ database: config.CLICKHOUSE_DATABASE }, 'the schema is up to date')
} catch (error) {
  logger.fatal(errorFields(error), 'migration failed')
  process.exitCode = 1
} finally {
  await client.close()
}
