import { afterAll, beforeAll, expect, it } from 'vitest'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'

let installation: OperatedInstallation

beforeAll(async () => {
  installation = await startOperatedInstallation()
})

afterAll(() => installation?.stop())

it('the commands of an upgrade and of the way back work under load, and refuse and lose nothing', async () => {
  const { clients, adminUrl } = installation
  const page = await installation.openPage('upgrade.md', { ADMIN_URL: adminUrl })
  await clients.untilServed(30_000)
  await page.run('0. Which version runs')
  await page.run('1. Read and back up')
  await page.run('2. Migrate')
  await installation.stopWorkers()
  await installation.startWorkers()
  await installation.replaceEdge()
  await page.run('3. Replace workers, then edges and API')
  await clients.untilServed(30_000)
  await installation.replaceEdge()
  await installation.stopWorkers()
  await installation.startWorkers()
  await page.run('Go back')
  await clients.untilServed(30_000)
  await installation.expectNothingLost(page)
  // 400 and 401 are the answers to requests that have to be refused.
  expect(Object.keys(clients.ledger.answers()).sort()).toEqual(['200', '400', '401'])
}, 120_000)
