import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { until } from '../../support/until.ts'

/** The workers check each minute. */
const NOTICED_WITHIN_MS = 90_000

let installation: OperatedInstallation

beforeAll(async () => {
  installation = await startOperatedInstallation()
})

afterAll(() => installation?.stop())

const readiness = async () => {
  const response = await fetch(`${installation.adminUrl}/readyz`)
  return { status: response.status, text: await response.text() }
}

it('a table and a view that are dropped under load are noticed and made again, and nothing is lost', async () => {
  const { clients, services } = installation
  const page = await installation.openPage('schema.md')
  await clients.untilServed(30_000)
  const clickhouse = createClickHouse({ url: services.clickhouseUrl, database: 'penstock' })
  await clickhouse.command({ query: 'DROP TABLE session_traces' })
  await clickhouse.command({ query: 'DROP VIEW findings_from_exceptions' })
  await clickhouse.close()
  const named = await until(
    'the workers name what is missing',
    async () => {
      const { status, text } = await readiness()
      return status === 503 && text
    },
    { deadlineMs: NOTICED_WITHIN_MS, everyMs: 500 },
  )
  expect(named).toMatch(/findings_from_exceptions is missing: run npm run migrate \(and 1 more\)/)
  await page.run('1. See what differs')
  expect(await page.run('2. Repair it')).toMatch(/brought the table session_traces back with its rows/)
  await until('the workers are ready', async () => (await readiness()).status === 200)
  await clients.untilServed(30_000)
  await installation.expectNothingLost(page)
}, 300_000)
