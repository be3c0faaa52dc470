import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { printedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import {
  failedOrder,
  logExport,
  newTraceId,
  send,
  spanIdOf,
  traceExport,
} from '../../support/console/staged-telemetry.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the console: missing ${browserFound.missing}`)

/** The document, styles, scripts and first page of the console, compressed. */
const FIRST_LOAD_BYTES = 60_000

describe.skipIf('missing' in browserFound)('the console', () => {
  const traceId = newTraceId()
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    page = await stack.openPage()
  })
  afterAll(() => stack?.stop())

  const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })

  it('asks for the link that was printed, and signs no one in without it', async () => {
    await page.goto(stack.urlOf('findings'))
    await page.getByText('You are not signed in').waitFor()
    expect(await page.evaluate('document.cookie')).toBe('')
    await takePictures(page, 'no-session')
  })

  it('signs one browser in by the link, and no second one', async () => {
    const link = printedLink(stack.start)
    await page.goto(link)
    await heading('Findings').waitFor()
    expect(page.url()).toBe(stack.urlOf(''))
    await page.getByRole('heading', { name: 'No findings yet' }).waitFor()
    await takePictures(page, 'findings-empty')
    expect(await violations(page)).toEqual([])
    const again = await fetch(new URL('/local-issuer/open', link), {
      method: 'POST',
      body: new URLSearchParams({ code: new URL(link).searchParams.get('code') ?? '' }),
    })
    expect(again.status).toBe(410)
    // The browser that is signed in gets to the console by the same link, and by the address alone.
    for (const url of [link, stack.credentials.baseUrl]) {
      await page.goto('about:blank')
      await page.goto(url)
      await heading('Findings').waitFor()
      expect(page.url()).toBe(stack.urlOf(''))
    }
  })

  it('has the token in memory only', async () => {
    // The session of the issuer is good for the issuer only.
    const kept = await page.evaluate(
      'JSON.stringify([Object.keys(localStorage), { ...sessionStorage }, document.cookie])',
    )
    expect(kept).toBe('[["penstock-session"],{},""]')
    expect(await stack.browser.context.cookies()).toEqual([])
    const token = String(await page.evaluate("localStorage.getItem('penstock-session')"))
    const used = await fetch(`${stack.credentials.baseUrl}/v3/findings`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(used.status).toBe(401)
  })

  it('stays signed in when it is loaded again and in a new tab, at the same address', async () => {
    await page.goto(stack.urlOf('findings?q=nothing'))
    await page.getByRole('heading', { name: 'No findings yet' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'No findings yet' }).waitFor()
    expect(page.url()).toBe(stack.urlOf('findings?q=nothing'))
    const tab = await stack.openPage()
    await tab.goto(stack.urlOf('traces'))
    await tab.getByRole('heading', { name: 'No traces yet' }).waitFor()
    await tab.close()
  })

  it('loads little at first, and nothing twice', async () => {
    const received = new Map<string, number>()
    const tab = await stack.openPage()
    const client = await tab.context().newCDPSession(tab)
    await client.send('Network.enable')
    await client.send('Network.setCacheDisabled', { cacheDisabled: true })
    const urls = new Map<string, string>()
    client.on('Network.responseReceived', ({ requestId, response }) => urls.set(requestId, response.url))
    client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const url = urls.get(requestId) ?? ''
      if (new URL(url).pathname.startsWith('/console/')) received.set(url, encodedDataLength)
    })
    await tab.goto(stack.urlOf('findings'))
    await tab.getByRole('heading', { level: 1, name: 'Findings' }).waitFor()
    await tab.close()
    const bytes = [...received.values()].reduce((sum, size) => sum + size, 0)
    console.info(`first load: ${bytes} bytes in ${received.size} requests`)
    expect(received.size).toBeGreaterThan(3)
    expect(bytes).toBeLessThan(FIRST_LOAD_BYTES)
    const script = [...received.keys()].find(url => url.endsWith('.js')) ?? ''
    const { headers } = await fetch(script)
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  })

  it('goes from the findings to a finding, its trace, a span and its session by the keyboard alone', async () => {
    const access = stack.credentials
    await send(access, 'traces', traceExport(traceId, Date.now() - 5_000, failedOrder('session-1')))
    await until('the finding is listed', async () => {
      await page.goto(stack.urlOf(''))
      await heading('Findings').waitFor()
      return page
        .getByText('UnknownPriceError')
        .waitFor({ timeout: 1_000 })
        .then(
          () => true,
          () => false,
        )
    })
    expect(await page.getByRole('img', { name: '1 in this time, at most 1 in a bar' }).count()).toBe(1)
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'findings')

    await until('the finding has the focus', async () => {
      await page.keyboard.press('j')
      return (await page.locator(':focus').textContent())?.includes('UnknownPriceError')
    })
    await page.keyboard.press('Enter')
    await heading('UnknownPriceError').waitFor()
    await page.getByText('lookUp', { exact: true }).waitFor()
    await page.locator('.entries a.mono').waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'finding')

    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await heading(/POST \/checkout/).waitFor()
    // At the span in which the finding occurred.
    await page.getByRole('complementary', { name: 'Details of the span' }).getByText('price the cart').waitFor()
    expect(new URL(page.url()).searchParams.get('span')).toBe(spanIdOf(4))
    await page.keyboard.press('Escape')
    await page.getByRole('complementary').waitFor({ state: 'detached' })
    await takePictures(page, 'trace')
    for (const key of ['j', 'Home', 'j', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Enter'])
      await page.keyboard.press(key)
    await page.getByRole('complementary', { name: 'Details of the span' }).getByText('authenticate').waitFor()
    expect(new URL(page.url()).searchParams.get('span')).toBe(spanIdOf(2))
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'trace-span')

    await page.keyboard.press('Escape')
    await page.getByRole('complementary').waitFor({ state: 'detached' })
    await page.keyboard.press('e')
    await page.getByRole('complementary').getByText('price the cart').waitFor()

    // To the first span, which names its session, and to the session.
    await page.locator('.wf-row[tabindex="0"]').focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('Enter')
    await page.getByRole('complementary').getByRole('link', { name: 'Session', exact: true }).waitFor()
    await until('the session has the focus', async () => {
      await page.keyboard.press('Tab')
      return (await page.locator(':focus').textContent()) === 'Session'
    })
    await page.keyboard.press('Enter')
    await page.getByText('session-1').first().waitFor()
    expect(new URL(page.url()).pathname).toBe('/console/sessions/session-1')

    await page.keyboard.press('g')
    await page.keyboard.press('t')
    await heading('Traces').waitFor()
    await page.getByRole('link', { name: /POST \/checkout/ }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'traces')
  })

  it('resolves a finding, comments on it, and lists findings by status', async () => {
    await page.goto(stack.urlOf('findings?q=UnknownPrice'))
    await page.getByRole('link', { name: /UnknownPriceError/ }).click()
    await page.getByRole('textbox', { name: 'Comment' }).fill('The price list lacks pens.')
    await page.getByRole('button', { name: 'Comment' }).click()
    await page.getByText('The price list lacks pens.').waitFor()
    await page.getByRole('combobox', { name: 'Assigned to' }).selectOption({ index: 1 })
    await page.getByText('assigned it to').waitFor()
    await page.getByRole('combobox', { name: 'Ignore' }).selectOption('Until it occurs 100 more times')
    await page.getByText('ignored until it occurs 100 more times').waitFor()
    await page.getByRole('button', { name: 'Open again' }).click()
    await page.getByText('opened it again').waitFor()
    await page.getByRole('button', { name: 'Resolve' }).click()
    await page.getByRole('button', { name: 'Open again' }).waitFor()
    await page.getByText('resolved it').waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'finding-resolved')
    await page.goto(stack.urlOf('findings'))
    await heading('Findings').waitFor()
    await page
      .getByText(/findings? (?:on this page|in this time)/)
      .first()
      .waitFor()
    expect(await page.getByRole('link', { name: /UnknownPriceError/ }).count()).toBe(0)
    await page.goto(stack.urlOf('findings?status=resolved'))
    await page.getByRole('link', { name: /UnknownPriceError/ }).waitFor()
    await page.getByText('1 finding on this page').waitFor()
  })

  it('shows what is unusual about spans, and why spans are missing', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}`))
    await page.getByText('parent missing').waitFor()
    await page.getByText('begins before its parent').waitFor()
    await page.getByText('Spans are missing').click()
    await page.getByText('Nothing was lost here', { exact: false }).first().waitFor()
    await takePictures(page, 'trace-missing')
    expect(await violations(page)).toEqual([])
  })

  it('lands on the span that an address names, and states that a trace does not have one', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}?span=${spanIdOf(4)}`))
    await page.getByRole('complementary').getByText('price the cart').waitFor()
    expect(await page.getByRole('row', { selected: true }).textContent()).toContain('price the cart')
    await page.goto(stack.urlOf(`traces/${traceId}?span=00000000000000ff`))
    await page.getByText('The trace does not have this span').waitFor()
  })

  it('shows the critical path of a trace, and its logs beside it, by address', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}?critical=1`))
    await page.getByRole('button', { name: /^Critical path of \d spans/, pressed: true }).waitFor()
    const path = await page.getByRole('row', { name: /on the critical path/ }).allTextContents()
    expect(path.some(text => text.includes('POST /checkout'))).toBe(true)
    expect(path.some(text => text.includes('write the audit log'))).toBe(false)
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'trace-critical')
    await page.keyboard.press('c')
    await page.getByRole('button', { name: 'Critical path', pressed: false }).waitFor()
    await page.keyboard.press('l')
    await page.getByRole('complementary', { name: 'Log records of the trace' }).waitFor()
    expect(new URL(page.url()).search).toBe('?logs=1')
    await page.keyboard.press('Escape')
    await page.getByRole('complementary').waitFor({ state: 'detached' })
  })

  it('shows log records, and the session that they are of', async () => {
    await send(stack.credentials, 'logs', logExport(traceId, spanIdOf(4), 'session-1', Date.now()))
    await until('the records are listed', async () => {
      await page.goto(stack.urlOf('logs'))
      await heading('Logs').waitFor()
      return page
        .getByText('no price of "pen"')
        .first()
        .waitFor({ timeout: 1_000 })
        .then(
          () => true,
          () => false,
        )
    })
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.locator('details[open]').getByText('cart.size').waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'logs')
    await page.getByRole('combobox', { name: 'Severity' }).selectOption('ERROR')
    await page.getByText('1 record on this page').waitFor()
    expect(new URL(page.url()).searchParams.get('severity')).toBe('ERROR')
    await page.getByRole('searchbox').fill('absent')
    await page.getByText('No log record matches').waitFor()
    await takePictures(page, 'logs-none')

    await page.goto(stack.urlOf(`traces/${traceId}?logs=1&span=${spanIdOf(4)}`))
    await page.getByRole('complementary').getByText('no price of "pen"').waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'trace-logs')

    await page.goto(stack.urlOf('sessions'))
    await page.getByRole('link', { name: /session-1/ }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'sessions')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: /web: POST \/checkout/ }).waitFor()
    expect(await violations(page)).toEqual([])
    const { baseUrl, publicKey } = stack.credentials
    for (const sequence of [0, 3]) {
      const query = `session=session-1&page=page-1&sequence=${sequence}&public_key=${publicKey}`
      const body = JSON.stringify({ sessionId: 'session-1' })
      expect((await fetch(`${baseUrl}/v3/session?${query}`, { method: 'POST', body })).status).toBe(200)
    }
    await until('the missing requests are named', async () => {
      await page.reload()
      await page.getByRole('heading', { name: 'Devices' }).waitFor()
      return (await page.getByText('2 requests of this session did not arrive').count()) > 0
    })
    await page.getByText('2 arrived, 1, 2 did not.').waitFor()
    await takePictures(page, 'session')
  })

  it('shows services with their rates, and a service with its operations and versions', async () => {
    await until('the services are listed', async () => {
      await page.goto(stack.urlOf('services'))
      await heading('Services').waitFor()
      return (await page.locator('a[data-row]').count()) > 1
    })
    const pricing = page.getByRole('link', { name: 'pricing', exact: true })
    await pricing.waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'services')
    await pricing.click()
    await heading(/^pricing/).waitFor()
    const sent = failedOrder('session-1').filter(({ service }) => service === 'pricing')
    await page.getByText(`(${sent.length} spans)`).waitFor()
    await page.getByText(`(${sent.filter(({ isError }) => isError).length} span)`).waitFor()
    for (const { name } of sent) await page.getByRole('rowheader', { name, exact: true }).waitFor()
    await page.getByRole('rowheader', { name: '1.4.2', exact: true }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'service')
  })

  it('shows releases, and whether everything that was accepted is stored', async () => {
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    await page.getByRole('heading', { name: 'No releases yet' }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'releases-empty')
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    await page.getByRole('heading', { name: 'Local surface' }).waitFor()
    await page.getByRole('heading', { name: 'No dead letters' }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'pipeline')
  })

  it('states that something does not exist', async () => {
    await page.goto(stack.urlOf(`traces/${'0'.repeat(31)}1`))
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    await takePictures(page, 'not-found')
    expect(await violations(page)).toEqual([])
    await page.goto(stack.urlOf('nothing'))
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  })

  it('asks no other origin for anything, and breaks no rule of its policy', () => {
    const origins = new Set(stack.requests.filter(url => !url.startsWith('data:')).map(url => new URL(url).origin))
    expect([...origins]).toEqual([new URL(stack.credentials.baseUrl).origin])
    // The browser reports responses that have a status of an error, which the tests above want.
    expect(stack.complaints.filter(text => !/status of 4\d\d/.test(text))).toEqual([])
  })

  it('shows which service calls which, as a map and as a list', { timeout: 300_000 }, async () => {
    // The calls of a minute are counted once the minute after it is over.
    const isCounted = async () => {
      await page.goto(stack.urlOf('services-map'))
      await heading('Service map').waitFor()
      return (await page.locator('.map .node').count()) > 1
    }
    await until('the calls are counted', isCounted, { deadlineMs: 240_000, everyMs: 1_000 })
    await page.getByRole('row', { name: /^gateway pricing request/ }).waitFor()
    await page.getByRole('row', { name: /^unknown audit request/ }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'service-map')
    await page.locator('.map a', { hasText: 'pricing' }).click()
    await heading(/^pricing/).waitFor()
    await page.getByRole('heading', { name: 'Calls from and to it' }).waitFor()
    await page.getByRole('row', { name: /^gateway pricing request/ }).waitFor()
  })
})
