import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../../schemas/units.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { pictureText } from '../../support/console/player-page.ts'
import { stageShopSession } from '../../support/console/shop-session.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { spanIdOf } from '../../support/console/staged-telemetry.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of keys: missing ${browserFound.missing}`)

const SESSION = 'session-keys'

describe.skipIf('missing' in browserFound)('the console by keyboard', () => {
  const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 36 * HOUR_MS
  let stack: ConsoleStack
  let page: Page
  let traceId: string

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    traceId = await stageShopSession(stack.credentials, SESSION, startMs)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })
  const focused = () => page.locator(':focus')
  const focus = (text: string, key: string) =>
    until(`${text} has the focus`, async () => {
      await press(key)
      return (await focused().textContent())?.includes(text)
    })
  const details = () => page.getByRole('complementary', { name: 'Details of the span' })
  const said = (text: RegExp) =>
    until(`the player says ${text}`, async () => text.test((await page.locator('.player-said').textContent()) ?? ''))

  it('leads from a finding to its span, to the session, and through the errors of its recording', async () => {
    await page.goto(stack.urlOf('findings'))
    await page.getByRole('link', { name: /UnknownPriceError/ }).waitFor()
    await focus('UnknownPriceError', 'j')
    await press('Enter')
    await heading('UnknownPriceError').waitFor()
    await page.locator('.entries a.mono').first().waitFor()
    await focus(traceId, 'j')
    await press('Enter')
    await details().getByText('price the cart').waitFor()
    expect(new URL(page.url()).searchParams.get('span')).toBe(spanIdOf(4))

    await press('ArrowDown', 'Home', 'Enter')
    await details().getByRole('link', { name: 'Session' }).waitFor()
    await focus('Session', 'Tab')
    await press('Enter')
    await until('the first picture', async () => (await pictureText(page)) === 'second 0 of tab-1')
    await press('Space')
    await said(/Playing/)
    await until('it plays', async () => (await pictureText(page)) === 'second 1 of tab-1')
    await press('e')
    await said(/Error 1 of 3: POST .checkout/)
    await press('e')
    await said(/Error 2 of 3/)
    await press('e')
    await said(/Error 3 of 3/)
    expect(Date.parse(new URL(page.url()).searchParams.get('t') ?? '')).toBe(startMs + 29_000)
    expect(await violations(page)).toEqual([])
  })

  it('looks up the span of a finding that an address names', async () => {
    await page.goto(stack.urlOf('findings'))
    const link = page.getByRole('link', { name: /UnknownPriceError/ })
    const finding = (await link.getAttribute('href'))?.split('/').at(-1)
    await page.goto(stack.urlOf(`traces/${traceId}?finding=${finding}`))
    await details().getByText('price the cart').waitFor()
    expect(new URL(page.url()).search).toBe(`?span=${spanIdOf(4)}`)
    await page.goto(stack.urlOf(`traces/${traceId}?finding=fnd_${'a'.repeat(26)}`))
    await page.getByText('The finding is in none of the 9 spans').waitFor()
  })

  it('gives the focus to the heading of a page that is opened, and leaves it where a filter is typed', async () => {
    await page.goto(stack.urlOf('traces'))
    await page.getByRole('link', { name: /POST \/checkout/ }).waitFor()
    await press('j', 'Enter')
    await page.getByRole('treegrid').waitFor()
    expect(await focused().evaluate(element => element.tagName)).toBe('H1')
    expect(await focused().textContent()).toContain('POST /checkout')
    await page.goBack()
    await heading('Traces').waitFor()
    await until('the heading has the focus', async () => (await focused().textContent())?.trim() === 'Traces')
    await press('/')
    await page.keyboard.type('checkout')
    await until('the filter is in the address', () => Promise.resolve(page.url().includes('name=checkout')))
    await page.getByRole('link', { name: /POST \/checkout/ }).waitFor()
    expect(await focused().inputValue()).toBe('checkout')
  })

  it('reads a sequence whose second key goes down before the first one is up', async () => {
    await page.goto(stack.urlOf('traces'))
    await heading('Traces').waitFor()
    for (const key of ['g', 's']) await page.keyboard.down(key)
    for (const key of ['g', 's']) await page.keyboard.up(key)
    await heading('Sessions').waitFor()
  })

  it('closes the list of keys by Escape and nothing else, and no key reaches the page behind it', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}?span=${spanIdOf(4)}`))
    await details().getByText('price the cart').waitFor()
    const dialog = page.getByRole('dialog', { name: 'Shortcuts' })
    await press('?')
    await dialog.waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'keys')
    await press('g', 'f', 'e')
    expect(new URL(page.url()).search).toBe(`?span=${spanIdOf(4)}`)
    expect(await dialog.isVisible()).toBe(true)
    await press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await details().waitFor()
  })

  it('leaves the arrows of a trace to what has the focus', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}`))
    await page.getByRole('treegrid').waitFor()
    await page.getByRole('button', { name: 'Collapse all' }).focus()
    await press('ArrowDown')
    expect(await focused().textContent()).toBe('Collapse all')
    await focused().blur()
    await press('ArrowDown')
    expect(await focused().getAttribute('role')).toBe('row')
  })

  it('shows and clears the span that log records are filtered by', async () => {
    await page.goto(stack.urlOf(`logs?trace=${traceId}&span=${spanIdOf(4)}`))
    const field = page.getByRole('textbox', { name: 'Span' })
    expect(await field.inputValue()).toBe(spanIdOf(4))
    await page.getByText('3 records on this page').waitFor()
    // To the millisecond, also for records of another day.
    expect(await page.locator('.log-time').first().textContent()).toMatch(/:\d\d[.,]00\d/)
    await field.fill('')
    await until('it is cleared', () => Promise.resolve(!page.url().includes('span=')))
  })

  it('finds sessions with a recording, and by surface', async () => {
    await page.goto(stack.urlOf('sessions'))
    await page.getByRole('combobox', { name: 'Recording' }).selectOption('true')
    await page.getByRole('row', { name: new RegExp(`${SESSION} .*recorded`) }).waitFor()
    await page.getByRole('combobox', { name: 'Surface' }).selectOption('Local surface')
    await page.getByText('1 session on this page').waitFor()
    expect(new URL(page.url()).searchParams.get('surface')).toBe(stack.credentials.surfaceId)
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'sessions-filtered')
  })
})
