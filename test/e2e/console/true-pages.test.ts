import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../../schemas/units.ts'
import { createReleaseClient } from '../../support/clients/release-client.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { SERVER_FAILURES, stageLateVisit } from '../../support/console/late-visit.ts'
import { pictureText, stageOf } from '../../support/console/player-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { logExport, send, spanIdOf } from '../../support/console/staged-telemetry.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of what pages state: missing ${browserFound.missing}`)

const VISIT = 'visit-of-mara'
/** Log records of `logExport`. */
const RECORDS_OF_EXPORT = 3

describe.skipIf('missing' in browserFound)('the console', () => {
  /** The visit was yesterday, and is sent now, as a device that was offline sends it. */
  const visitMs = Math.floor((Date.now() - 20 * HOUR_MS) / 1_000) * 1_000
  let traceIds: readonly string[]
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    traceIds = await stageLateVisit(stack.credentials, VISIT, visitMs)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })
  const fact = (name: string) => page.locator('.facts > div').filter({ hasText: name }).locator('dd')
  const field = (name: string) => page.getByLabel(name, { exact: true })

  it('shows the first picture of what rrweb has recorded, without a click', async () => {
    await page.goto(stack.urlOf(`sessions/${VISIT}`))
    await page.locator('.screen-picture:not(.empty) > iframe:not(.unseen)').waitFor()
    await until('the picture is there', async () => ((await pageText()) ?? '').length > 20)
    expect(await page.locator('.screen-note:not(.waiting)').count()).toBe(0)
    expect(await page.locator('.player-time').textContent()).toMatch(/^0:00 of 0:2\d/)
    // Back at its beginning.
    await page.getByRole('slider').press('End')
    await page.getByRole('slider').press('Home')
    await page.locator('.screen-note:not(.waiting)').waitFor({ state: 'detached' })
    await takePictures(page, 'session-of-rrweb')
  })

  const pageText = () =>
    stageOf(page)?.evaluate<string | undefined>(
      "document.querySelector('iframe')?.contentDocument?.body?.textContent ?? undefined",
    )

  it('states what is missing of a recording that has one event', async () => {
    await page.goto(stack.urlOf('sessions/one-event'))
    await page.locator('.screen-note').getByText('no full snapshot of this window has arrived').waitFor()
    await page.getByText('All events of this recording have the same time').waitFor()
    expect(await page.getByRole('button', { name: 'Play' }).isDisabled()).toBe(true)
    expect(await page.locator('.player-time').textContent()).not.toMatch(/Jan 1|1970/)
    expect(await pictureText(page)).toBeUndefined()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'session-of-one-event')
  })

  it('shows who a session is of, and when it was: the same in its list, its page and its timeline', async () => {
    await page.goto(stack.urlOf('sessions?hasFinding=true'))
    const row = page.getByRole('row').filter({ hasText: 'Mara Lindqvist' })
    const length = await row.locator('[data-label="Length"]').textContent()
    expect(length).toBe('40 s')
    await row.getByRole('link').click()
    await heading(/Mara Lindqvist/).waitFor()
    await page.getByText('Loading the recording').waitFor({ state: 'detached' })
    expect(await fact('User').textContent()).toBe('usr_9001')
    expect(await fact('Email').textContent()).toBe('mara@example.com')
    expect(await fact('Country').textContent()).toBe('SE')
    expect(await fact('Identified by').textContent()).toBe('Shop (custom)')
    await page.getByRole('cell', { name: 'gold' }).waitFor()
    await page.getByText('2 identities').click()
    await page.getByRole('rowheader', { name: /usr_1$/ }).waitFor()
    const first = await fact('First seen').locator('time').getAttribute('datetime')
    expect(Date.parse(first ?? '')).toBe(visitMs)
    const timeline = page.getByRole('list', { name: 'Timeline' })
    expect(await timeline.locator('time').first().getAttribute('datetime')).toContain(first?.slice(0, 23))
    await page.getByRole('combobox', { name: 'Show' }).selectOption('heartbeat,identity,replay')
    await timeline.locator('.timeline-identity').getByText('received').first().waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'session-of-mara')
  })

  it('brings the player into view when an entry far below it is played', async () => {
    await page.goto(stack.urlOf(`sessions/${VISIT}`))
    await page.locator('.screen-picture:not(.empty)').waitFor()
    const entry = page.getByRole('list', { name: 'Timeline' }).getByRole('button').nth(4)
    await entry.scrollIntoViewIfNeeded()
    await page.mouse.wheel(0, 3_000)
    await entry.click()
    await until('the player is in view', async () => {
      const box = await page.locator('.player-controls').boundingBox()
      return box !== null && box.y >= 0 && box.y + box.height <= 900
    })
  })

  it('shows when exceptions occurred, and when they arrived in the title', async () => {
    await page.goto(stack.urlOf('findings'))
    for (const { type } of SERVER_FAILURES) {
      const cells = page.getByRole('row').filter({ hasText: type })
      expect(await cells.locator('[data-label="Last"]').textContent()).toBe('20 h ago')
    }
    const python = page.getByRole('row').filter({ hasText: 'payment.errors.ChargeFailed' })
    expect(await python.locator('.place').textContent()).toBe('charge in /app/payment/acquirer.py:68')
    const row = page.getByRole('row').filter({ hasText: 'UnknownPriceError' })
    expect(await row.locator('.sparkline').getAttribute('aria-label')).toMatch(/^40 in this time/)
    await row.getByRole('link').click()
    const occurrence = page.getByRole('heading', { name: 'Occurrences' }).locator('..').locator('time').first()
    expect(await occurrence.textContent()).toBe('20 h ago')
    expect(await occurrence.getAttribute('title')).toMatch(/Z, received 20/)
    expect(await fact('Last occurred').textContent()).toBe('20 h ago')
    const label = (await page.locator('.bars > svg').getAttribute('aria-label')) ?? ''
    expect(label).toMatch(/^40 occurrences between /)
    // The first bar has all of them.
    expect(await page.locator('.bars rect').first().getAttribute('x')).toMatch(/^[01]\.1$/)
    const why = page.locator('details', { has: page.getByText('Why these are one finding') })
    await why.locator('summary').click()
    expect(await why.locator('.source').first().textContent()).not.toBe('')
    expect(await why.textContent()).toMatch(/These types and frames are the same.*UnknownPriceError/)
    // A version leads to its release once there is one.
    const links = page.getByRole('link', { name: '1.4.2' })
    expect([await fact('Releases').textContent(), await links.count()]).toEqual(['1.4.2', 0])
    const { baseUrl, secretKey } = stack.credentials
    await createReleaseClient(baseUrl, secretKey).register('1.4.2')
    await page.reload()
    await fact('Releases').getByRole('link', { name: '1.4.2' }).click()
    await heading('Release 1.4.2').waitFor()
  })

  it('states in a field why a filter is not accepted, and keeps the list', async () => {
    await page.goto(stack.urlOf('traces'))
    await page
      .getByRole('link', { name: /POST \/checkout/ })
      .first()
      .waitFor()
    const before = stack.requests.length
    for (const [name, text, fault] of [
      ['Attributes', 'http.response', '“http.response” needs a value'],
      ['At least ms', 'abc', '"abc" is not a whole number'],
    ] as const) {
      await field(name).fill(text)
      await field(name).press('Enter')
      await page.getByText(fault).waitFor()
      expect(await field(name).getAttribute('aria-invalid')).toBe('true')
    }
    expect(await page.getByRole('row').count()).toBe(42)
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(await violations(page)).toEqual([])
    await field('Attributes').fill('http.route=/api/orders')
    await field('Attributes').press('Enter')
    await page.waitForURL(/where=/)
    await page.getByText('needs a value').waitFor({ state: 'detached' })
    await page.goto(stack.urlOf('logs?trace=abc&span=1&where=x'))
    for (const fault of ['has 32 hex digits, this has 3', 'has 16 hex digits, this has 1']) {
      await page.getByText(fault).waitFor()
    }
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(
      stack.requests.slice(before).filter(url => /NaN|where=(?!%5B%5B%22http.route)/.test(new URL(url).search)),
    ).toEqual([page.url()])
  })

  it('filters by clicking on a value, by several conditions, and suggests keys and values', async () => {
    await page.goto(stack.urlOf('traces'))
    await field('Attributes').fill('http.rou')
    await page.locator('datalist option[value="http.route"]').waitFor({ state: 'attached' })
    await field('Attributes').fill('http.route=')
    await page.locator('datalist option[value="http.route=/api/orders"]').waitFor({ state: 'attached' })
    await field('Attributes').fill('http.route~ORDERS')
    await field('Attributes').press('Enter')
    await page.getByText('http.route contains ORDERS').waitFor()
    await page
      .getByRole('link', { name: /POST \/checkout/ })
      .first()
      .click()
    await heading(/POST \/checkout/).waitFor()
    await page.getByRole('row', { name: /api/ }).first().click()
    const only = page.getByRole('link', { name: 'Only traces with this http.route' })
    await only.focus()
    await only.press('Enter')
    await page.waitForURL(/traces\?.*where=/)
    await page.getByRole('list', { name: 'Conditions on attributes' }).getByText('http.route = ').waitFor()
    await page
      .getByRole('link', { name: /POST \/checkout/ })
      .first()
      .waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: /^Remove http.route/ }).click()
    await page.waitForURL(url => !url.searchParams.has('where'))
  })

  it('has one time range, typed or dragged, for all pages and in every address', async () => {
    await send(stack.credentials, 'logs', logExport(traceIds[0] ?? '', spanIdOf(1), 'session-1', Date.now()))
    await page.goto(stack.urlOf('logs'))
    const drawn = page.getByRole('img', { name: /records? between/ })
    await until('the record is drawn', async () => {
      await page.getByRole('button', { name: 'Refresh' }).click()
      return (await drawn.count()) > 0
    })
    const chooser = page.getByRole('button', { name: /^Time / })
    await chooser.press('Enter')
    const typed = page.getByRole('textbox', { name: 'From and to' })
    await typed.fill('the day before')
    await typed.press('Enter')
    await page.getByText('This is not a time before now').waitFor()
    expect(await violations(page)).toEqual([])
    await typed.fill('last 2 h')
    await typed.press('Enter')
    await page.waitForURL(/from=now-2h/)
    expect(await chooser.textContent()).toBe('Last 2 hours')
    expect(await page.evaluate('document.activeElement.className')).toBe('chooser')

    const bars = page.locator('.bars > svg')
    await bars.scrollIntoViewIfNeeded()
    const { x = 0, y = 0, width = 0 } = (await bars.boundingBox()) ?? {}
    await page.mouse.move(x + width * 0.25, y + 20)
    await page.mouse.down()
    await page.mouse.move(x + width * 0.5, y + 20, { steps: 4 })
    await page.mouse.up()
    await page.waitForURL(/from=20.*to=20/)
    const range = new URL(page.url()).searchParams
    const [from, to] = [range.get('from') ?? '', range.get('to') ?? '']
    const minutes = (Date.parse(to) - Date.parse(from)) / 60_000
    expect(minutes).toBeGreaterThan(28)
    expect(minutes).toBeLessThan(34)

    for (const name of ['Traces', 'Sessions', 'Services', 'Metrics', 'Findings']) {
      const asked = page.waitForRequest(request => {
        const { pathname, searchParams } = new URL(request.url())
        return pathname === `/v3/${name.toLowerCase()}` && searchParams.get('from') === from
      })
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
      expect(new URL((await asked).url()).searchParams.get('to'), name).toBe(to)
      expect(new URL(page.url()).searchParams.get('to'), name).toBe(to)
    }
    await page.goBack()
    await heading('Metrics').waitFor()
  })

  it('reads a page again by a button, by a key and by itself', async () => {
    await page.goto(stack.urlOf('traces'))
    await heading('Traces').waitFor()
    const again = () => page.waitForRequest(request => new URL(request.url()).pathname === '/v3/traces')
    let read = again()
    await page.getByRole('button', { name: 'Refresh' }).click()
    await read
    read = again()
    await page.keyboard.press('r')
    await read
    await page.getByRole('combobox', { name: 'Refresh by itself' }).selectOption('5')
    await again()
    await page.getByRole('combobox', { name: 'Refresh by itself' }).selectOption('0')
  })

  it('leads from any id or text to its page, by the keyboard', async () => {
    await page.goto(stack.urlOf('metrics'))
    await heading('Metrics').waitFor()
    await page.keyboard.press('Control+k')
    const text = page.getByRole('combobox', { name: /^A trace, span/ })
    await text.fill(traceIds[0] ?? '')
    await page.getByRole('option', { name: `Trace ${traceIds[0]}`, selected: true }).waitFor()
    expect(await violations(page)).toEqual([])
    await text.press('Enter')
    await page.waitForURL(new RegExp(`/traces/${traceIds[0]}`))
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await text.fill('checkout')
    await text.press('ArrowDown')
    await page.getByRole('option', { name: 'Log records with “checkout”', selected: true }).waitFor()
    await text.press('Enter')
    await page.waitForURL(/logs\?q=checkout/)
  })

  it('shows log records as they arrive, each once, and those around one', async () => {
    await page.goto(stack.urlOf('logs'))
    await page.getByRole('checkbox', { name: 'Live' }).check()
    await page.waitForURL(/live=1/)
    const entries = page.locator('.logs > li')
    await entries.first().waitFor()
    const before = await entries.count()
    for (let i = 1; i <= 2; i++) {
      await send(stack.credentials, 'logs', logExport(traceIds[0] ?? '', spanIdOf(1), 'session-1', Date.now()))
      await until('the record is shown', async () => (await entries.count()) === before + i * RECORDS_OF_EXPORT)
    }
    // Another look shows none of them again.
    const watermarks = () => page.waitForRequest(request => request.url().includes('/v3/watermarks'))
    await watermarks()
    await watermarks()
    expect(await entries.count()).toBe(before + 2 * RECORDS_OF_EXPORT)
    expect(await violations(page)).toEqual([])
    await entries.first().locator('summary').click()
    await entries.first().getByRole('link', { name: 'Records around it' }).click()
    await page.waitForURL(url => url.searchParams.has('to') && !url.searchParams.has('live'))
    await entries.first().waitFor()
  })

  it('leaves a field with Escape, so that keys are shortcuts again', async () => {
    await page.goto(stack.urlOf('traces'))
    await page
      .getByRole('link', { name: /POST \/checkout/ })
      .first()
      .waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('POST')
    await page.waitForURL(/name=POST/)
    await page.keyboard.press('Escape')
    expect(await field('Name of a span').inputValue()).toBe('POST')
    await page.keyboard.press('g')
    await page.keyboard.press('f')
    await heading('Findings').waitFor()
  })

  it('returns to where a list was scrolled to, at once', async () => {
    await page.goto(stack.urlOf('traces'))
    const link = page.getByRole('link', { name: /POST \/checkout/ }).nth(35)
    await link.scrollIntoViewIfNeeded()
    const top = await page.evaluate<number>('scrollY')
    expect(top).toBeGreaterThan(800)
    await link.click()
    await heading(/POST \/checkout/).waitFor()
    expect(await page.evaluate<number>('scrollY')).toBe(0)
    await page.route('**/v3/traces?*', () => {})
    await page.goBack()
    await until('the list is where it was', async () => Math.abs((await page.evaluate<number>('scrollY')) - top) < 20)
    await page.unroute('**/v3/traces?*')
    await page.goForward()
    await heading(/POST \/checkout/).waitFor()
  })

  it('opens the details of a span as a sheet where there is no room beside it', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(stack.urlOf(`traces/${traceIds[0]}`))
    await page.getByRole('row').filter({ hasText: 'roll back' }).click()
    const details = page.getByRole('complementary', { name: 'Details of the span' })
    await details.getByText('Duration').waitFor()
    await until('the sheet is in view, and does not cover the row', async () => {
      const [sheet, row] = [await details.boundingBox(), await page.locator('.wf-row.selected').boundingBox()]
      return sheet !== null && row !== null && sheet.y > 200 && sheet.y < 600 && row.y + row.height <= sheet.y + 1
    })
    await page.screenshot({ path: 'test/artefacts/console/trace-sheet-390.png' })
    await details.getByRole('button', { name: 'Close' }).click()
    await details.waitFor({ state: 'detached' })
    await page.setViewportSize({ width: 1280, height: 900 })
  })

  it('gives a service the same colour in every trace', async () => {
    const hues: (string | null)[] = []
    for (const traceId of traceIds.slice(0, 2)) {
      await page.goto(stack.urlOf(`traces/${traceId}`))
      hues.push(await page.locator('.wf-service').filter({ hasText: 'pricing' }).first().getAttribute('data-hue'))
    }
    expect(hues).toEqual(['10', '10'])
  })

  it('states whether it has copied', async () => {
    const copy = page.getByRole('button', { name: 'Copy id' })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await copy.click()
    await page.getByRole('status').getByText('Copied', { exact: true }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(traceIds[1])
    await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    await copy.click()
    await page.getByRole('status').getByText('Not copied').waitFor()
  })

  it('shows metrics in their units, with an axis as wide as its labels', async () => {
    await page.goto(stack.urlOf('metrics/memory?from=now-1h'))
    const cell = page.locator('[data-label="Greatest"]')
    expect(await cell.textContent()).toMatch(/^≈ 188\.\d MiB$/)
    expect(await cell.getAttribute('title')).toMatch(/^197,\d{3},\d{3}.* By$/)
    const room = await page.evaluate<number>("document.querySelector('.u-over').offsetLeft")
    const needed = await page.evaluate<number>(`(() => {
      const context = document.createElement('canvas').getContext('2d')
      context.font = '12px system-ui, sans-serif'
      return context.measureText('192 MiB').width
    })()`)
    expect(room).toBeGreaterThan(needed)
    expect(room).toBeLessThan(needed + 40)
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'metric-of-bytes')
  })

  it('creates no API key without a permission', async () => {
    await page.goto(stack.urlOf('settings/keys'))
    await page.getByText('Create an API key').click()
    await field('Name').fill('nothing')
    await page.getByRole('button', { name: 'Create API key' }).click()
    await page.getByRole('alert').getByText('choose at least one').waitFor()
    expect(await page.getByText('No API keys yet').count()).toBe(1)
  })

  it('warns of nothing', () => {
    expect(stack.complaints).toEqual([])
  })
})
