import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rounds } from '../support/length.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { expectNoneTwice, expectStored, keepMark, type Marks, olderMarks } from '../support/pages/browser-sdk/marks.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import type { SdkPages, Weather } from '../support/pages/browser-sdk/serve-sdk-pages.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of lives of pages: missing ${browserFound.missing}`)

/** Lives of pages. */
const LIVES = rounds(200)

/** The ends of lives. Each begins with a page that makes marks, and leaves none of the context. */
const ENDS: Readonly<Record<string, (page: Page, context: BrowserContext, pages: SdkPages) => Promise<void>>> = {
  async navigation(page, _, { origin }) {
    await page.goto(`${origin}/settings.js`)
    await page.close()
  },
  async reload(page, _, { origin }) {
    await page.reload()
    await page.goto(`${origin}/settings.js`)
    await page.close()
  },
  close: page => page.close({ runBeforeUnload: false }),
  async crash(page) {
    const crashed = page.waitForEvent('crash')
    await Promise.all([crashed, page.goto('chrome://crash').catch(() => undefined)])
    await page.close()
  },
  async 'offline and back'(page, context) {
    await context.setOffline(true)
    await page.waitForTimeout(1_500)
    await context.setOffline(false)
    await page.waitForTimeout(500)
    await page.close()
  },
  async 'offline, then closed'(page, context) {
    await context.setOffline(true)
    await page.waitForTimeout(800)
    await page.close()
    await context.setOffline(false)
  },
  async 'an outage'(page, _, pages) {
    for (const weather of ['unavailable', 'full', 'cut', 'answers lost', 'fine'] satisfies Weather[]) {
      pages.weather = weather
      await page.waitForTimeout(700)
    }
    await page.close()
  },
}

describe.skipIf('missing' in browserFound)('pages that end in every way', () => {
  let stage: SdkStage
  let browser: TestBrowser
  const lives: Marks[] = []

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stage = await startSdkStage()
    browser = await startBrowser(browserFound.path)
  })
  afterAll(async () => {
    await browser?.stop()
    await stage?.stop()
  })

  async function live(end: string): Promise<Marks> {
    const { context } = browser
    const page = await context.newPage()
    const marks: Marks = new Map()
    page.on('console', message => keepMark(marks, message.text()))
    await page.goto(`${stage.pages.origin}/?marks`)
    await until('the page makes marks', () => marks.size > 60)
    await ENDS[end]?.(page, context, stage.pages)
    return marks
  }

  it(
    `lose nothing that is older than two seconds, and send nothing twice: ${LIVES} lives`,
    async () => {
      const ends = Object.keys(ENDS)
      for (let i = 0; i < LIVES; i++) lives.push(await live(ends[i % ends.length] as string))
      // The next page of the origin sends what the others have left.
      const heir = await browser.context.newPage()
      await heir.goto(`${stage.pages.origin}/`)
      const expected = lives.flatMap(olderMarks)
      await expectStored(stage, expected, 120_000)
      await until('nothing waits', async () => {
        const state = (await heir.evaluate('penstock.status()')) as { waiting: number }
        return state.waiting === 0
      })
      await expectNoneTwice(stage)
      const all = lives.reduce((sum, marks) => sum + marks.size, 0)
      console.log(
        `${LIVES} lives, ${all} marks, ${expected.length} older than two seconds before the end, 0 lost, 0 twice`,
      )
      expect(expected.length).toBeGreaterThan(0)
    },
    LIVES * 15_000 + 240_000,
  )

  it('name what did not arrive by their numbers', async () => {
    const rows = await stage.rows<{ page_id: string; numbers: number[]; n: number | string }>(
      'SELECT page_id, groupUniqArray(sequence) AS numbers, count() AS n FROM page_requests GROUP BY page_id',
    )
    expect(rows.length).toBeGreaterThanOrEqual(LIVES)
    for (const { numbers, n } of rows) expect(Number(n)).toBe(numbers.length)
  })
})
