import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { jobsStoredInPart } from '../../../cli/backup/stored-in-part.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

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

/** Returns whether a worker has left a job stored in part, which only workers complete. */
async function isStoredInPart(): Promise<boolean> {
  const redis = new Redis(installation.services.redisUrl)
  return jobsStoredInPart(onOneServer(redis))
    .then(jobs => jobs.length > 0)
    .finally(() => redis.disconnect())
}

it('a lost ClickHouse and a lost directory are restored, and requests that waited in Redis are stored', async () => {
  const { services, settings, clients } = installation
  const page = await installation.openPage('backup-and-restore.md')
  // While requests arrive and workers store them.
  await clients.untilServed(30_000)
  await page.run('Back up')
  // What is stored after the newest backup is lost. So from now on nothing is.
  await until(
    'no job is stored in part',
    async () => {
      await installation.stopWorkers()
      if (!(await isStoredInPart())) return true
      await installation.startWorkers()
      return false
    },
    { deadlineMs: 150_000 },
  )
  await page.run('Back up')
  await clients.untilServed(30_000)
  await clients.stop()

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
