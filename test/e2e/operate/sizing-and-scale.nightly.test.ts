import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { EXIT } from '../../../cli/exit-codes.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'

let installation: OperatedInstallation

beforeAll(async () => {
  installation = await startOperatedInstallation()
})

afterAll(() => installation?.stop())

it('the commands that show what is full work under load', async () => {
  const { clients, adminUrl } = installation
  const page = await installation.openPage('scale.md', { ADMIN_URL: adminUrl })
  await clients.untilServed(30_000)
  for (const heading of page.left()) await page.run(heading)
  expect(page.left()).toEqual([])
})

it('the commands of daily work are those that exist', async () => {
  const { clients, adminUrl, services } = installation
  const stored = clients.ledger.entries.find(entry => entry.receiptId !== undefined && entry.fate === 'stored')
  const page = await installation.openPage('running.md', {
    ADMIN_URL: adminUrl,
    FILE: join(services.dir, 'bundle.tar.gz'),
    RECEIPT: stored?.receiptId ?? '',
  })
  // The page audits a day before this installation.
  await page.run('Is anything lost?', {}, EXIT.notJudged)
  for (const heading of page.left()) await page.run(heading)
  expect(page.left()).toEqual([])
})

it('plans are made and compared as the page shows', async () => {
  const page = await installation.openPage('sizing.md', { DIR: installation.services.dir })
  await page.run('A plan')
  await page.run('With costs of your machine')
  const [plain, gzip] = (await page.run('Compare two plans')).trim().split('\n').map(Number)
  expect(plain).toBeGreaterThan(0)
  expect(gzip).toBeGreaterThan(0)
  expect(page.left()).toEqual([])
})
