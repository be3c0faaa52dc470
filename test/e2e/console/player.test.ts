import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../../schemas/units.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { pictureText } from '../../support/console/player-page.ts'
import { NEXT_DAY_MS } from '../../support/console/shop-recording.ts'
import { stageShopSession } from '../../support/console/shop-session.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the player: missing ${browserFound.missing}`)

const SESSION = 'session-recorded'

describe.skipIf('missing' in browserFound)('the player', () => {
  const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 36 * HOUR_MS
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    await stageShopSession(stack.credentials, SESSION, startMs)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  const at = (second: number) => new Date(startMs + second * 1_000).toISOString()
  const open = async (second?: number) => {
    await page.goto(stack.urlOf(`sessions/${SESSION}${second === undefined ? '' : `?t=${at(second)}`}`))
    await page.getByRole('region', { name: 'Player' }).waitFor()
  }
  const shown = () => pictureText(page)
  const shows = (text: string) => until(`the picture is ${text}`, async () => (await shown()) === text)
  const slider = () => page.getByRole('slider', { name: 'Time of the recording' })
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }

  it('is loaded on the page of a session with a recording, and shows its first picture', async () => {
    const before = stack.requests.length
    await open()
    await shows('second 0 of tab-1')
    const own = stack.requests.slice(before).map(url => new URL(url).pathname)
    const script = own.filter(path => /\/stage-/.test(path))
    expect(script).toHaveLength(1)
    const { headers } = await fetch(new URL(script[0] ?? '', page.url()), {
      headers: { 'accept-encoding': 'gzip' },
      method: 'GET',
    })
    console.info(`the stage: ${headers.get('content-length')} bytes`)
    expect(Number(headers.get('content-length'))).toBeLessThan(75_000)
    expect(stack.requests.slice(0, before).filter(url => /\/stage-/.test(url))).toEqual([])
    await takePictures(page, 'player')
    expect(await violations(page)).toEqual([])
  })

  it.each([
    [5, 'second 5 of tab-1'],
    [39, 'second 39 of tab-1'],
    [20, 'second 20 of tab-1'],
    [90, 'second 90 of tab-1'],
    [85, 'second 85 of tab-1'],
    [200, 'second 200 of tab-2'],
    [2, 'second 2 of tab-1'],
  ])('shows what the user saw at second %i, as its address names it', async (second, text) => {
    await open(second)
    await shows(text)
  })

  const note = (text: string | RegExp) => page.locator('.screen-note').getByText(text).waitFor()
  const status = async (text: RegExp) => {
    let said: string | null = null
    const isSaid = async () => {
      said = await page.locator('.player-said').textContent()
      return text.test(said ?? '')
    }
    await until(`the player says ${text}`, isSaid).catch(cause => {
      throw new Error(`the player says "${said}"`, { cause })
    })
  }

  it('keeps the last picture where chunks were lost, and states why nothing newer is seen', async () => {
    await open(50)
    await shows('second 39 of tab-1')
    await note(/never arrived. The last picture before is shown/)
    expect(await slider().getAttribute('aria-valuetext')).toMatch(/Lost/)
    await page.getByText('parts of the recording without a picture').click()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'player-lost')
    await open(70)
    await shows('second 70 of tab-1')
    await note(/the picture may differ/)
    await takePictures(page, 'player-doubtful')
  })

  it('states from when on a window can be played whose first snapshot never arrived', async () => {
    await open(190)
    await note(/cannot be played before .*: its first full snapshot never arrived/)
    expect(await page.locator('.screen-picture > iframe').isVisible()).toBe(false)
    await page.getByRole('list', { name: 'Timeline' }).waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'player-no-snapshot')
  })

  it('is played by the keyboard, and everything of the session follows its time', async () => {
    await page.goto(stack.urlOf('sessions'))
    await page.getByRole('link', { name: new RegExp(SESSION) }).waitFor()
    await press('j', 'Enter')
    await shows('second 0 of tab-1')
    await press('Space')
    await status(/Playing/)
    await shows('second 2 of tab-1')
    await takePictures(page, 'player-playing')
    await press('Space')
    await status(/Paused at/)
    const stood = Date.parse(new URL(page.url()).searchParams.get('t') ?? '')
    expect(stood).toBeGreaterThan(startMs + 2_000)
    await press('e')
    await status(/Error 1 of 3: UnknownPriceError/)
    await shows('second 28 of tab-1')
    await press('ArrowRight')
    await shows('second 33 of tab-1')
    await page
      .locator('ol[aria-label="Timeline"] > li[aria-current="time"]')
      .getByText('no price of "pen" in 1')
      .waitFor()
    await press('e')
    await status(/No error after this time/)
    await press('Shift+E')
    await status(/Error 3 of 3: POST .* 500/)
    await shows('second 29 of tab-1')
    await press('Shift+E', 'Shift+E')
    await status(/Error 1 of 3/)
    await press('Shift+E')
    await status(/No error before this time/)
    await press('e', 'e')
    await status(/Error 3 of 3/)
  })

  it('goes to the time of an entry that is clicked, and shows the recorded console and requests', async () => {
    await open(0)
    await shows('second 0 of tab-1')
    await page
      .getByRole('list', { name: 'Timeline' })
      .getByRole('listitem')
      .filter({ hasText: 'price the cart' })
      .count()
    await page.getByRole('list', { name: 'Console' }).getByRole('button').nth(1).click()
    await shows('second 31 of tab-1')
    await page.getByRole('button', { name: 'Network' }).click()
    await page.getByText('POST https://shop.example/api/orders 500').waitFor()
    await page.getByRole('list', { name: 'Timeline' }).locator('.timeline-log button').first().click()
    await shows('second 31 of tab-1')
    expect(await violations(page)).toEqual([])
    await page.getByRole('list', { name: 'Requests' }).scrollIntoViewIfNeeded()
    await takePictures(page, 'player-panes')
  })

  it('skips inactivity, and crosses 35 hours in one step', async () => {
    await open(100)
    await shows('second 100 of tab-1')
    await page.getByRole('button', { name: 'Play' }).click()
    await status(/Skipped 5\d s without activity/)
    await open(206)
    await shows('second 206 of tab-2')
    const before = stack.requests.length
    await page.getByRole('button', { name: 'Play' }).click()
    await status(/Skipped 35 h without activity/)
    await shows(`second ${NEXT_DAY_MS / 1_000 + 2} of tab-2`)
    expect(stack.requests.slice(before).filter(url => url.includes('/replay/events')).length).toBeLessThan(4)
  })

  it('shows the window that is chosen, and keeps it and the speed in the address', async () => {
    await open(200)
    await shows('second 200 of tab-2')
    const choice = (name: string) => page.getByRole('combobox', { name })
    await choice('Window').selectOption('Window 1')
    await note('This window was not open at this time.')
    await choice('Speed').selectOption('4')
    const { searchParams } = new URL(page.url())
    expect([searchParams.get('window'), searchParams.get('speed')]).toEqual(['tab-1', '4'])
    await page.reload()
    await note('This window was not open at this time.')
    expect(await choice('Speed').inputValue()).toBe('4')
    await choice('Window').selectOption('Window 2')
    await shows('second 200 of tab-2')
  })

  it('keeps the picture while it reads, states that it cannot, and recovers by itself', async () => {
    await open(0)
    await shows('second 0 of tab-1')
    let answer = () => {}
    const held = new Promise<void>(resolve => {
      answer = resolve
    })
    await page.route('**/replay/events?*', async route => {
      await held
      await route.fulfill({
        status: 503,
        contentType: 'application/json',
        body: '{"code":"X","message":"objects are unavailable"}',
      })
    })
    await slider().press('End')
    await note('Loading the recording')
    expect(await shown()).toBe('second 0 of tab-1')
    await takePictures(page, 'player-loading')
    answer()
    await page.getByRole('alert').getByText('Stored data cannot be read at the moment').waitFor()
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'player-unavailable')
    await page.unroute('**/replay/events?*')
    await shows(`second ${NEXT_DAY_MS / 1_000 + 19} of tab-2`)
  })

  it('breaks no rule of a policy, and asks no other origin for anything', () => {
    const own = new URL(stack.credentials.baseUrl).origin
    const urls = stack.requests.filter(url => !/^(?:data|blob):/.test(url))
    expect([...new Set(urls.map(url => new URL(url).origin))]).toEqual([own])
    expect(stack.complaints.filter(text => !/status of [45]\d\d/.test(text))).toEqual([])
  })
})
