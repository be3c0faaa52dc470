import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import type { Status } from '../../packages/browser/src/options.ts'
import { type SdkPages, serveSdkPages } from '../support/pages/browser-sdk/serve-sdk-pages.ts'
import { startFirefox } from '../support/pages/firefox.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const found = await startFirefox()
if ('missing' in found) console.warn(`no test of the browser package in Firefox: ${found.missing}`)
const firefox = 'missing' in found ? undefined : found

const LIVES = ['navigation', 'close', 'crash', 'navigation', 'close', 'crash'] as const
/** A page that is killed may lose what happened in this time before. */
const LOST_MS = 2_000

describe.skipIf(firefox === undefined)('the browser package in Firefox', () => {
  let stack: Stack
  let pages: SdkPages
  let clickhouse: ClickHouseClient

  beforeAll(async () => {
    stack = await startStack()
    const { ingestUrl, apiUrl, secrets, services } = stack
    clickhouse = createClickHouse({ url: services.clickhouseUrl, database: 'penstock' })
    pages = await serveSdkPages({ ingestUrl, apiUrl, key: secrets.publicKey, options: { recording: { sample: 1 } } })
  })
  afterAll(async () => {
    await firefox?.stop()
    await pages?.stop()
    await clickhouse?.close()
    await stack?.stop()
  })

  const rows = async <T>(query: string): Promise<T[]> =>
    (await clickhouse.query({ query, format: 'JSONEachRow' })).json<T>()

  async function open(path: string) {
    const page = await firefox?.browser.newPage()
    if (page === undefined) throw new Error('Firefox is missing')
    await page.goto(pages.origin + path)
    return page
  }

  it('sends spans, exceptions with their stacks, a recording, and states that all is stored', async () => {
    const page = await open('/cart')
    const session = (await page.evaluate('penstock.sessionId')) as string
    await page.evaluate('use()')
    await until('the page is recorded', () => pages.telemetry.some(({ path }) => path.startsWith('/v3/replay/')))
    await page.evaluate('penstock.flush()')
    const status = await until('all is stored', async () => {
      const shown = (await page.evaluate('penstock.status()')) as Status
      return shown.stored === shown.sent ? shown : undefined
    })
    expect(status).toMatchObject({ session, waiting: 0, lost: 0, spool: 'disk' })
    const names = await rows<{ name: string }>(`SELECT name FROM spans WHERE session_id = '${session}'`)
    expect(names.map(({ name }) => name)).toEqual(expect.arrayContaining(['page load /cart', 'POST', 'GET']))
    const exceptions = await until('the exceptions are stored', async () => {
      const stored = await rows<{ message: string; stacktrace: string; browser: string }>(
        `SELECT message, stacktrace, browser FROM exceptions WHERE session_id = '${session}' ORDER BY message`,
      )
      return stored.length >= 3 ? stored : undefined
    })
    expect(exceptions.map(({ message }) => message)).toEqual(['nor this', 'not caught', 'the quote failed'])
    expect(exceptions[2]?.stacktrace).toMatch(/^Error: the quote failed\n.*@http.*\nCaused by: TypeError: no price/s)
    expect(exceptions[2]?.browser).toMatch(/^Firefox/)
    await page.close()
  })

  it(`loses nothing older than two seconds, and sends nothing twice: ${LIVES.length} lives`, async () => {
    const expected: string[] = []
    for (const end of LIVES) {
      const marks = new Map<string, number>()
      const page = await open('/')
      page.on('console', message => {
        const [, id, time] = /^mark (\S+) (\d+)$/.exec(message.text()) ?? []
        if (id !== undefined) marks.set(id, Number(time))
      })
      await page.goto(`${pages.origin}/?marks`)
      await until('the page makes marks', () => marks.size > 60)
      if (end === 'crash') await firefox?.crash()
      else if (end === 'navigation') await page.goto(`${pages.origin}/settings.js`)
      if (end !== 'crash') await page.close()
      const endedAtMs = Math.max(...marks.values())
      expected.push(...[...marks].filter(([, atMs]) => atMs < endedAtMs - LOST_MS).map(([mark]) => mark))
    }
    await open('/')
    const stored = async () => {
      const query = `SELECT extract(body, '^mark (.+)$') AS mark, count() AS n FROM logs WHERE body LIKE 'mark %' GROUP BY mark`
      return new Map((await rows<{ mark: string; n: number | string }>(query)).map(({ mark, n }) => [mark, Number(n)]))
    }
    const missing = async () => {
      const all = await stored()
      return expected.filter(mark => !all.has(mark))
    }
    await until('all marks are stored', async () => (await missing()).length === 0, { deadlineMs: 90_000 }).catch(
      async () => expect(await missing()).toEqual([]),
    )
    expect([...(await stored())].filter(([, n]) => n !== 1)).toEqual([])
    expect(expected.length).toBeGreaterThan(100)
  })
})
