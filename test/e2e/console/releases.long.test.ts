import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createReleaseClient } from '../../support/clients/release-client.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { failInRelease } from '../../support/console/failing-release.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of releases in the console: missing ${browserFound.missing}`)

const DEVICE = '0b6f6f0e-3c1d-4b52-9a2e-6d4f8d0c5a11'

describe.skipIf('missing' in browserFound)('the console and releases', () => {
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    const { baseUrl, secretKey } = stack.credentials
    await failInRelease(stack.credentials, '1.4.2')
    await createReleaseClient(baseUrl, secretKey).register('1.5.0-rc.1')
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  const looksRight = async (name: string) => {
    expect(await violations(page)).toEqual([])
    await takePictures(page, name)
  }
  /** Loads a page again until it shows something that is being stored. */
  const untilShown = (path: string, shown: Locator) =>
    until(
      `${path} shows it`,
      async () => {
        await page.goto(stack.urlOf(path))
        return shown
          .first()
          .waitFor({ timeout: 3_000 })
          .then(
            () => true,
            () => false,
          )
      },
      { deadlineMs: 60_000 },
    )
  const finding = () => page.getByRole('link', { name: /TypeError.*reading 'cents'/ })

  it('shows a release with its source maps, and one that is not complete', async () => {
    await untilShown('releases', page.getByRole('row', { name: /^1\.4\.2 .* 1 6 complete/ }))
    await page.getByRole('row', { name: /^1\.5\.0-rc\.1 .*not complete/ }).waitFor()
    await looksRight('releases')
  })

  it('opens a release with its source maps and what they have resolved', async () => {
    const path = async (version: string) => {
      await page.goto(stack.urlOf('releases'))
      const href = await page.getByRole('link', { name: version, exact: true }).getAttribute('href')
      return (href ?? '').replace('/console/', '')
    }
    await untilShown(await path('1.4.2'), page.locator('.facts').getByText(/^\d+ %, [1-9]\d* of \d+ frames$/))
    await page.getByRole('heading', { level: 1, name: 'Release 1.4.2' }).waitFor()
    await page.getByRole('row', { name: /\.js\.map ~.* verified$/ }).waitFor()
    await looksRight('release')
    await page.goto(`${page.url()}?cursor=of-another-upload`)
    await page.getByText('REQUEST_INVALID: cursor is').waitFor()
    await page.getByRole('button', { name: 'First page' }).click()
    await page.getByRole('row', { name: /\.js\.map ~.* verified$/ }).waitFor()
    await page.goto(stack.urlOf(await path('1.5.0-rc.1')))
    await page.getByRole('heading', { name: 'No source maps yet' }).waitFor()
    await looksRight('release-incomplete')
  })

  it('shows a new finding with the lines of its source', async () => {
    await untilShown('findings', finding())
    await page.getByRole('row', { name: /TypeError .*open new/ }).waitFor()
    await looksRight('findings-new')
    await finding().click()
    await page.getByText('cents += line.quantity * line.price.cents').waitFor()
    await page.getByText('source map', { exact: true }).first().waitFor()
    expect(await page.locator('.frames .file').first().textContent()).toMatch(/^src\/money\.ts:\d+/)
    await looksRight('finding-resolved-frames')
  })

  it('shows that a finding which was resolved has regressed, and in which release', async () => {
    await page.getByRole('button', { name: 'Resolve' }).click()
    await page.getByRole('button', { name: 'Open again' }).waitFor()
    await failInRelease(stack.credentials, '1.4.3')
    await untilShown('findings?status=regressed', finding())
    await looksRight('findings-regressed')
    await finding().click()
    await page.locator('.facts').getByText('Regressed in').waitFor()
    expect(await page.locator('.facts > div', { hasText: 'Regressed in' }).locator('dd').textContent()).toBe('1.4.3')
    await looksRight('finding-regressed')
  })

  it('lists the devices of a session', async () => {
    const { baseUrl, publicKey } = stack.credentials
    for (let i = 0; i < 2; i++) {
      const response = await fetch(`${baseUrl}/v3/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-service-public-key': publicKey },
        body: JSON.stringify({ sessionId: 'session-devices', deviceId: DEVICE, fpHash: 'f3a9' }),
      })
      expect(response.status).toBe(200)
    }
    await untilShown('sessions/session-devices', page.getByRole('row', { name: new RegExp(`${DEVICE}.* 2 `) }))
    await looksRight('session-devices')
  })

  it('names a session without a link if no address can lead to it', async () => {
    const { baseUrl, publicKey } = stack.credentials
    const response = await fetch(`${baseUrl}/v3/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': publicKey },
      body: JSON.stringify({ sessionId: '..' }),
    })
    expect(response.status).toBe(200)
    const row = page.getByRole('row').filter({ has: page.getByText('..', { exact: true }) })
    await untilShown('sessions', row)
    expect(await row.getByRole('link').count()).toBe(0)
  })
})
