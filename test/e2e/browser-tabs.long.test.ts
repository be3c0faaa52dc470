import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Status } from '../../packages/browser/src/options.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of tabs: missing ${browserFound.missing}`)

const MINUTE_MS = 60_000

/** Lets a test move the clock of a page by `globalThis.skipped` milliseconds. */
const CLOCK = `
  const now = Date.now
  globalThis.skipped = 0
  Date.now = () => now() + skipped`

/** Is active every 20 minutes for 25 hours. Returns the session after each time. */
const DAY = `Array.from({ length: 75 }, () => {
  skipped += 20 * 60_000
  dispatchEvent(new Event('pointerdown'))
  return penstock.sessionId
})`

/** A chunk of a recording, as it is stored. */
interface Chunk {
  readonly window: string
  readonly segment: number
}

describe.skipIf('missing' in browserFound)('tabs of one origin', () => {
  let stage: SdkStage
  let browser: TestBrowser

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stage = await startSdkStage()
    browser = await startBrowser(browserFound.path)
    await browser.context.addInitScript(CLOCK)
  })
  afterAll(async () => {
    await browser?.stop()
    await stage?.stop()
  })

  // The clock of a page that a test leaves would not be that of the next one.
  afterEach(async () => {
    for (const page of browser.context.pages()) if (page.url() !== 'about:blank') await page.close()
  })

  async function open(path = '/'): Promise<Page> {
    const page = await browser.context.newPage()
    await page.goto(stage.pages.origin + path)
    return page
  }

  const sessionOf = (page: Page) => page.evaluate('penstock.sessionId') as Promise<string>
  const statusOf = (page: Page) => page.evaluate('penstock.status()') as Promise<Status>
  const move = (page: Page, ms: number) => page.evaluate(`void (skipped += ${ms})`)

  /** Clicks until this session has a chunk of the recording that is no other window's, and returns the window. */
  async function recordedWindow(page: Page, session: string, others: ReadonlySet<string>): Promise<string> {
    return until('the window is recorded', async () => {
      await page.evaluate("document.querySelector('#buy').append('!')")
      const windows = (await chunksOf(session)).map(({ window }) => window)
      return windows.find(window => !others.has(window))
    })
  }

  const chunksOf = (session: string) =>
    stage.rows<Chunk>(
      `SELECT window_id AS window, segment_number AS segment FROM replay_chunks
       WHERE session_id = '${session}' ORDER BY window, segment`,
    )

  /** Expects that no number of a page, and none of a window of this session, was used twice or left out. */
  async function expectNumbers(session: string): Promise<void> {
    const pages = await stage.rows<{ numbers: number[] }>(
      'SELECT arraySort(groupArray(sequence)) AS numbers FROM page_requests GROUP BY page_id',
    )
    const windows = Map.groupBy(await chunksOf(session), ({ window }) => window)
    const segments = [...windows.values()].map(chunks => chunks.map(({ segment }) => segment))
    for (const numbers of [...pages.map(page => page.numbers), ...segments]) {
      expect(numbers).toEqual(numbers.map((_, i) => i))
    }
  }

  it('have one session, and each a page and a window of its own', async () => {
    const first = await open()
    const session = await sessionOf(first)
    const firstWindow = await recordedWindow(first, session, new Set())
    const second = await open('/checkout')
    expect(await sessionOf(second)).toBe(session)
    const secondWindow = await recordedWindow(second, session, new Set([firstWindow]))
    expect(secondWindow).not.toBe(firstWindow)
    expect((await statusOf(first)).page).not.toBe((await statusOf(second)).page)
    await settle(first, second)
    await expectNumbers(session)
  })

  it('that were duplicated share no number, although the browser copies the storage of the tab', async () => {
    const first = await open()
    const session = await sessionOf(first)
    const windows = new Set((await chunksOf(session)).map(({ window }) => window))
    windows.add(await recordedWindow(first, session, windows))
    await settle(first)
    // The next page of the tab continues its window. It is duplicated before its recorder is loaded.
    const loading = Promise.withResolvers<void>()
    await browser.context.route('**/recorder-*.js', async route => {
      await loading.promise
      await route.continue()
    })
    await first.reload()
    const opened = first.waitForEvent('popup')
    await first.evaluate("sessionStorage.setItem('copied', 'yes'); void window.open(location.href)")
    const duplicate = await opened
    await duplicate.waitForLoadState()
    await until('the duplicate runs', () => duplicate.evaluate("typeof penstock === 'object'"))
    expect(await duplicate.evaluate("sessionStorage.getItem('copied')")).toBe('yes')
    expect(await sessionOf(duplicate)).toBe(session)
    loading.resolve()
    const own = await recordedWindow(duplicate, session, windows)
    expect(windows).not.toContain(own)
    expect((await statusOf(first)).page).not.toBe((await statusOf(duplicate)).page)
    await Promise.all([first, duplicate].map(page => page.evaluate("document.querySelector('#buy').append('!')")))
    await settle(first, duplicate)
    const all = (await chunksOf(session)).map(({ window }) => window)
    expect(new Set(all)).toEqual(new Set([...windows, own]))
    await expectNumbers(session)
  })

  it('have another session after 30 minutes without activity on any of them', async () => {
    const first = await open()
    const second = await open()
    const session = await sessionOf(first)
    for (const page of [first, second]) await move(page, 20 * MINUTE_MS)
    await first.locator('#buy').click()
    for (const page of [first, second]) await move(page, 20 * MINUTE_MS)
    // The first one was active 20 minutes ago.
    expect([await sessionOf(second), await sessionOf(first)]).toEqual([session, session])
    for (const page of [first, second]) await move(page, 11 * MINUTE_MS)
    const next = await sessionOf(second)
    expect(next).not.toBe(session)
    expect(await sessionOf(first)).toBe(next)
    await settle(first, second)
    for (const one of [session, next]) await expectNumbers(one)
  })

  it('have another session after 24 hours of activity', async () => {
    const page = await open()
    const session = await sessionOf(page)
    const sessions = (await page.evaluate(DAY)) as string[]
    const others = new Set(sessions.filter(id => id !== session))
    expect(others.size).toBe(1)
    const hours = sessions.filter(id => id === session).length / 3
    expect(hours).toBeGreaterThan(23)
    expect(hours).toBeLessThanOrEqual(24)
    await settle(page)
    for (const one of [session, ...others]) await expectNumbers(one)
  })

  /** Waits until all that pages have sent is stored. */
  async function settle(...pages: readonly Page[]): Promise<void> {
    for (const page of pages) {
      await page.evaluate('penstock.flush()')
      await until('all of the page is stored', async () => {
        const { waiting, sent, acknowledged, stored } = await statusOf(page)
        return waiting === 0 && acknowledged === sent && stored === Math.min(sent, 100)
      })
    }
  }
})
