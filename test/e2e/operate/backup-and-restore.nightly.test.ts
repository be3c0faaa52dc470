import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { startRedis } from '../../../deploy/local/stores/redis.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { findCommand } from '../../support/debian-package.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { pathWith } from '../../support/operate/page.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

const rsync = findCommand('rsync', 'usr/bin/rsync')

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

it('a lost ClickHouse and a lost directory are restored, and requests that waited in Redis are stored', async () => {
  if ('fault' in rsync) return console.log(`SKIPPED, nothing is restored: ${rsync.fault}`)
  const { services, settings, clients } = installation
  const page = await installation.openPage('backup-and-restore.md', {
    PATH: pathWith(rsync.command),
    DATA: join(services.dir, 'clickhouse'),
    BACKUP: join(services.dir, 'backup'),
  })
  await clients.untilServed(30_000)
  await until(
    'no batch is stored in part',
    async () => {
      await installation.stopWorkers()
      return page.run('Stop the workers').then(
        () => true,
        () => installation.startWorkers().then(() => false),
      )
    },
    { deadlineMs: 60_000 },
  )
  // These wait in Redis. Nothing is stored after the backup, because it would be lost.
  await clients.untilServed(30_000)
  await clients.stop()
  await page.run('Back up')

  await services.clickhouse.kill9()
  settings.CLICKHOUSE_URL = clickhouse.url
  await page.run('ClickHouse is lost', settings)

  settings.DIRECTORY_REDIS_URL = directory.url
  await page.run('The directory is lost', settings)
  await installation.stopEdge()
  await installation.startEdge()
  await installation.startWorkers()
  await installation.expectNothingLost(page)
  expect(clients.ledger.answers()['200']).toBeGreaterThan(0)
}, 180_000)
