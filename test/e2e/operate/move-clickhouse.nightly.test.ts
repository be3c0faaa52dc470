import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { clickhouseUrl, startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { findCommand } from '../../support/debian-package.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { pathWith } from '../../support/operate/page.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'

const rsync = findCommand('rsync', 'usr/bin/rsync')

let installation: OperatedInstallation
let next: LocalService | undefined

beforeAll(async () => {
  installation = await startOperatedInstallation()
})

afterAll(async () => {
  await installation?.stop()
  await next?.stop()
})

it('ClickHouse moves to another server under load, and nothing that was acknowledged is lost or stored twice', async () => {
  if ('fault' in rsync) return console.log(`SKIPPED, no server is moved: ${rsync.fault}`)
  const { services, settings, clients } = installation
  const [oldData, newData] = [join(services.dir, 'clickhouse'), join(services.dir, 'clickhouse-2')]
  const options = { dir: newData, port: await freePort(), password: SERVER_PASSWORD, log: () => {} }
  const page = await installation.openPage('move-clickhouse.md', {
    PATH: pathWith(rsync.command),
    OLD_DATA: oldData,
    NEW_DATA: newData,
    NEW: clickhouseUrl(options),
  })
  await clients.untilServed(30_000)
  await page.run('1. Copy while the server runs')
  await clients.untilServed(30_000)
  await services.clickhouse.stop()
  await page.run('3. Copy the rest')
  await installation.killWorkers()
  next = await startClickHouse(options)
  settings.CLICKHOUSE_URL = next.url
  await page.run('4. Start the new server')
  await installation.startWorkers()
  await clients.untilServed(30_000)
  await installation.expectNothingLost(page)
  // Requests were accepted all the time. 400 and 401 are the answers to those that have to be refused.
  expect(Object.keys(clients.ledger.answers()).sort()).toEqual(['200', '400', '401'])
}, 180_000)
