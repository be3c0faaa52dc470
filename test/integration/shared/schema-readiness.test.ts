import { pino } from 'pino'
import { afterEach, expect, it } from 'vitest'
import { connectApi } from '../../../api/connect.ts'
import { claimedClickHouse } from '../../../clickhouse/claimed-clickhouse.ts'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { newInstallation } from '../../../shared/installation/queue-losses.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createLifecycle } from '../../../shared/runtime/lifecycle.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { workersConfigSchema } from '../../../workers/config.ts'
import { connectWorkers } from '../../../workers/connect.ts'
import { createWorkerMetrics } from '../../../workers/metrics.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { apiConfig } from '../../support/services/api.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const database = `schema_readiness_${process.pid}`
const logger = pino({ level: 'silent' })
const REASON = `clickhouse: the database ${database} has no schema: run npm run migrate`

const admin = createClickHouse({ url: services.clickhouseUrl })
const lifecycle = createLifecycle(logger, 2_000)
afterEach(async () => {
  await lifecycle.stop('test')
  await admin.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
  await admin.close()
})

it('workers and API that start before the migrations are not ready, and are once these have run', async () => {
  await admin.command({ query: `CREATE DATABASE ${database}` })
  const config = parseConfig(workersConfigSchema, {
    REDIS_URL: services.redisUrl,
    DIRECTORY_REDIS_URL: services.redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    CLICKHOUSE_DATABASE: database,
    ...s3Settings(services.s3),
  })
  const processMetrics = createMetrics('test')
  const wiring = { queues: [], logger, lifecycle, metrics: createWorkerMetrics(processMetrics), processMetrics }
  const workers = connectWorkers(config, wiring, new AbortController().signal)
  const api = connectApi(apiConfig(services, database), logger, createMetrics('api'), lifecycle)
  await until('the workers name the reason', () => workers.isReady() === REASON)
  await until('the API names the reason', async () => (await api.isReady()) === REASON)
  await migrateQuickly(admin, { database, retentionDays: 30, logger })
  await until('the workers are ready', () => workers.isReady() === true)
  await until('the API is ready', async () => (await api.isReady()) === true)
  const installation = api.watchInstallation()
  await until('the API has compared its stores', async () => (await api.isReady()) === true)
  const clickhouse = createClickHouse({ url: services.clickhouseUrl, database })
  await claimedClickHouse(clickhouse).replace({ id: newInstallation().id, epochs: {} })
  await clickhouse.close()
  await installation.check()
  expect(await api.isReady()).toMatch(/^ClickHouse belongs to installation/)
})
