import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { untilSettled } from '../../support/chaos/compare-ledger.ts'
import { runCli, runDirectoryCli } from '../../support/clients/run-cli.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'

let installation: OperatedInstallation
let clickhouse: LocalService
let directory: LocalService

beforeAll(async () => {
  installation = await startOperatedInstallation()
  const { dir } = installation.services
  const options = { password: SERVER_PASSWORD, log: () => {} }
  clickhouse = await startClickHouse({ ...options, dir: join(dir, 'clickhouse-2'), port: await freePort() })
  directory = await startRedis({ ...options, dir: join(dir, 'directory-2'), port: await freePort() })
})

afterAll(async () => {
  await installation?.stop()
  await clickhouse?.stop()
  await directory?.stop()
})

/** Waits until everything that was accepted is stored, however slow this machine is. */
async function untilStored(): Promise<void> {
  const redis = new Redis(installation.services.redisUrl)
  await untilSettled({ queues: onOneServer(redis) }, 150_000).finally(() => redis.disconnect())
}

it('a lost ClickHouse and a lost directory are restored, and requests that waited in Redis are stored', async () => {
  const { services, settings, clients } = installation
  const page = await installation.openPage('backup-and-restore.md')
  // While requests arrive and workers store them.
  await clients.untilServed(30_000)
  await page.run('Back up')
  // What is stored after the newest backup is lost. So from it on, requests only wait in Redis.
  await installation.stopEdge()
  await untilStored()
  await page.run('Back up')
  await installation.stopWorkers()
  await installation.startEdge()
  await clients.untilServed(30_000)
  await clients.stop()
  // As the workers do each hour. What is registered after it is lost with the directory.
  expect(await runDirectoryCli(['directory', 'backup'], { env: settings })).toMatchObject({ code: 0 })

  await services.clickhouse.kill9()
  settings.CLICKHOUSE_URL = clickhouse.url
  // The new server gets the disk of the backups.
  await rm(join(services.dir, 'clickhouse-2/backups'), { recursive: true, force: true })
  await rename(join(services.dir, 'clickhouse/backups'), join(services.dir, 'clickhouse-2/backups'))
  await page.run('ClickHouse is lost', settings)

  settings.DIRECTORY_REDIS_URL = directory.url
  await page.run('The directory is lost', settings)
  await installation.stopEdge()
  await installation.startEdge()
  await installation.startWorkers()
  await installation.expectNothingLost(page, { heading: 'Check that the restored data is whole' })
  expect(clients.ledger.answers()['200']).toBeGreaterThan(0)
}, 480_000)

it('without a backup, an empty ClickHouse belongs to the installation once it is adopted', async () => {
  const { settings, clients } = installation
  await installation.stopWorkers()
  settings.CLICKHOUSE_DATABASE = 'penstock_empty'
  const admin = createClickHouse({ url: clickhouse.url })
  await migrate(admin, { database: settings.CLICKHOUSE_DATABASE, retentionDays: 30, logger: pino({ level: 'silent' }) })
  await admin.close()
  const doctor = await runCli(['doctor'], { env: settings })
  expect(doctor.stdout).toMatch(/ClickHouse has no installation id/)
  expect(await runCli(['doctor', '--adopt'], { env: settings })).toMatchObject({ code: 0 })
  expect((await runCli(['doctor'], { env: settings })).stdout).not.toMatch(/no installation id/)
  // They take jobs again, which those of an empty database would not.
  await installation.startWorkers()
  await untilStored()
  expect(clients.ledger.answers()['200']).toBeGreaterThan(0)
}, 240_000)
