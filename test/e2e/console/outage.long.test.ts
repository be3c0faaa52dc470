import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { failInRelease } from '../../support/console/failing-release.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of outages in the console: missing ${browserFound.missing}`)

const UNREADABLE = 'Stored data cannot be read at the moment'

describe.skipIf('missing' in browserFound)('the console during an outage', () => {
  let traceId: string
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    traceId = await failInRelease(stack.credentials, '2.4.0')
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  it('states that stored data cannot be read, and recovers by itself', async () => {
    const body = JSON.stringify({
      code: 'INGEST_INFRA_UNAVAILABLE',
      message: 'traces are unavailable',
      service: 'api-analytics',
    })
    await page.route('**/v3/traces?*', route => route.fulfill({ status: 503, contentType: 'application/json', body }))
    await page.goto(stack.urlOf('traces'))
    await page.getByRole('alert').getByText(UNREADABLE).waitFor({ timeout: 2_000 })
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'unavailable')
    await page.unroute('**/v3/traces?*')
    await page.getByRole('link', { name: /submit #checkout/ }).waitFor()
  })

  it('states that a page cannot be shown when the console fails, and keeps the navigation', async () => {
    const tab = await stack.openPage()
    await tab.route('**/v3/traces?*', route => route.fulfill({ json: { traces: [{}], nextCursor: null } }))
    await tab.goto(stack.urlOf('traces'))
    await tab.getByRole('alert').getByText('This page cannot be shown').waitFor()
    expect(await violations(tab)).toEqual([])
    await takePictures(tab, 'console-error')
    await tab.unroute('**/v3/traces?*')
    await tab.getByRole('button', { name: 'Try again' }).click()
    await tab.getByRole('link', { name: /submit #checkout/ }).waitFor()
    await tab.close()
  })

  it('states on a trace that ClickHouse is down, shows the pipeline meanwhile, and recovers by itself', async () => {
    const pipeline = await stack.openPage()
    await pipeline.goto(stack.urlOf('releases'))
    await pipeline.getByRole('heading', { level: 1, name: 'Releases' }).waitFor()
    await page.goto(stack.urlOf('findings'))
    await page.getByText('TypeError').waitFor()

    const killed = new Set<number>()
    // It is started again by itself, and killed again until the outage was seen.
    const kill = () => {
      const pid = stack.start.pidsOf('clickhouse').at(-1) as number
      if (!killed.has(pid)) process.kill(pid, 'SIGKILL')
      killed.add(pid)
    }
    kill()
    await page.goto(stack.urlOf(`traces/${traceId}`))
    await pipeline.keyboard.press('g')
    await pipeline.keyboard.press('p')
    await until('the trace states the outage', async () => {
      kill()
      return page.getByRole('alert').getByText(UNREADABLE).first().isVisible()
    })
    await pipeline.getByRole('heading', { name: 'Local surface' }).waitFor()
    kill()
    await takePictures(page, 'clickhouse-down-trace')
    await takePictures(pipeline, 'clickhouse-down-pipeline')

    await page.getByRole('treegrid').waitFor({ timeout: 60_000 })
    await page.getByRole('alert').waitFor({ state: 'detached' })
    expect(await pipeline.getByRole('heading', { name: 'Local surface' }).isVisible()).toBe(true)
    await pipeline.getByRole('alert').waitFor({ state: 'detached' })
    await pipeline.close()
  })
})
