import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { rounds } from '../support/length.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { type SdkPages, serveSdkPages, type Weather } from '../support/pages/browser-sdk/serve-sdk-pages.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of lives of pages: missing ${browserFound.missing}`)

/** Lives of pages. */
const LIVES = rounds(200)
/** A page that is killed may lose what happened in this time before. */
const LOST_MS = 2_000

/** What a page has noted, and how its life ended. */
interface Life {
  readonly end: string
  /** Number of a mark → its time, Unix ms. */
  readonly marks: Map<string, number>
  endedAtMs: number
}

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
  let stack: Stack
  let pages: SdkPages
  let browser: TestBrowser
  let clickhouse: ClickHouseClient
  const lives: Life[] = []

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startStack()
    const { ingestUrl, apiUrl, secrets, services } = stack
    clickhouse = createClickHouse({ url: services.clickhouseUrl, database: 'penstock' })
    pages = await serveSdkPages({ ingestUrl, apiUrl, key: secrets.publicKey, options: { recording: { sample: 1 } } })
    browser = await startBrowser(browserFound.path)
  })
  afterAll(async () => {
    await browser?.stop()
    await pages?.stop()
    await clickhouse?.close()
    await stack?.stop()
  })

  async function live(end: string): Promise<Life> {
    const { context } = browser
    const page = await context.newPage()
    const life: Life = { end, marks: new Map(), endedAtMs: 0 }
    page.on('console', message => {
      const [, id, time] = /^mark (\S+) (\d+)$/.exec(message.text()) ?? []
      if (id !== undefined) life.marks.set(id, Number(time))
    })
    await page.goto(`${pages.origin}/?marks`)
    await until('the page makes marks', () => life.marks.size > 60)
    await ENDS[end]?.(page, context, pages)
    life.endedAtMs = Math.max(...life.marks.values())
    return life
  }

  async function storedMarks(): Promise<Map<string, number>> {
    const query = `SELECT extract(body, '^mark (.+)$') AS mark, count() AS n FROM logs WHERE body LIKE 'mark %' GROUP BY mark`
    const rows = await (await clickhouse.query({ query, format: 'JSONEachRow' })).json<{
      mark: string
      n: number | string
    }>()
    return new Map(rows.map(({ mark, n }) => [mark, Number(n)]))
  }

  it(
    `lose nothing that is older than two seconds, and send nothing twice: ${LIVES} lives`,
    async () => {
      const ends = Object.keys(ENDS)
      for (let i = 0; i < LIVES; i++) lives.push(await live(ends[i % ends.length] as string))
      // The next page of the origin sends what the others have left.
      const heir = await browser.context.newPage()
      await heir.goto(`${pages.origin}/`)
      const expected = lives.flatMap(({ end, marks, endedAtMs }) => {
        return [...marks].filter(([, atMs]) => atMs < endedAtMs - LOST_MS).map(([mark]) => ({ end, mark }))
      })
      const missing = async () => {
        const stored = await storedMarks()
        return expected.filter(({ mark }) => !stored.has(mark))
      }
      await until('all marks are stored', async () => (await missing()).length === 0, { deadlineMs: 120_000 }).catch(
        async () => expect(await missing()).toEqual([]),
      )
      await until('nothing waits', async () => {
        const state = (await heir.evaluate('penstock.status()')) as { waiting: number }
        return state.waiting === 0
      })
      const twice = [...(await storedMarks())].filter(([, n]) => n !== 1)
      expect(twice).toEqual([])
      const all = lives.reduce((sum, { marks }) => sum + marks.size, 0)
      console.log(
        `${LIVES} lives, ${all} marks, ${expected.length} older than two seconds before the end, 0 lost, 0 twice`,
      )
      expect(expected.length).toBeGreaterThan(0)
    },
    LIVES * 15_000 + 240_000,
  )

  it('name what did not arrive by their numbers', async () => {
    const rows = await (
      await clickhouse.query({
        query: `SELECT page_id, groupUniqArray(sequence) AS numbers, count() AS n FROM page_requests GROUP BY page_id`,
        format: 'JSONEachRow',
      })
    ).json<{ page_id: string; numbers: number[]; n: number | string }>()
    expect(rows.length).toBeGreaterThanOrEqual(LIVES)
    for (const { numbers, n } of rows) expect(Number(n)).toBe(numbers.length)
  })
})
