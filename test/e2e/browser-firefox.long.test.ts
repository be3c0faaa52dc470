import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Status } from '../../packages/browser/src/options.ts'
import { expectNoneTwice, expectStored, keepMark, type Marks, olderMarks } from '../support/pages/browser-sdk/marks.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import { startFirefox } from '../support/pages/firefox.ts'
import { until } from '../support/until.ts'

const found = await startFirefox()
if ('missing' in found) console.warn(`no test of the browser package in Firefox: ${found.missing}`)
const firefox = 'missing' in found ? undefined : found

const LIVES = ['navigation', 'close', 'crash', 'navigation', 'close', 'crash'] as const

describe.skipIf(firefox === undefined)('the browser package in Firefox', () => {
  let stage: SdkStage

  beforeAll(async () => {
    stage = await startSdkStage()
  })
  afterAll(async () => {
    await firefox?.stop()
    await stage?.stop()
  })

  async function open(path: string) {
    const page = await firefox?.browser.newPage()
    if (page === undefined) throw new Error('Firefox is missing')
    await page.goto(stage.pages.origin + path)
    return page
  }

  it('sends spans, exceptions with their stacks, a recording, and states that all is stored', async () => {
    const page = await open('/cart')
    const session = (await page.evaluate('penstock.sessionId')) as string
    await page.evaluate('use()')
    await until('the page is recorded', () => stage.pages.telemetry.some(({ path }) => path.startsWith('/v3/replay/')))
    await page.evaluate('penstock.flush()')
    const status = await until('all is stored', async () => {
      const shown = (await page.evaluate('penstock.status()')) as Status
      return shown.waiting === 0 && shown.stored === shown.sent ? shown : undefined
    })
    expect(status).toMatchObject({ session, waiting: 0, lost: 0, spool: 'disk' })
    const names = await stage.rows<{ name: string }>(`SELECT name FROM spans WHERE session_id = '${session}'`)
    expect(names.map(({ name }) => name)).toEqual(expect.arrayContaining(['page load /cart', 'POST', 'GET']))
    const exceptions = await until('the exceptions are stored', async () => {
      const stored = await stage.rows<{ message: string; stacktrace: string; browser: string }>(
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
      const marks: Marks = new Map()
      const page = await open('/')
      page.on('console', message => keepMark(marks, message.text()))
      await page.goto(`${stage.pages.origin}/?marks`)
      await until('the page makes marks', () => marks.size > 60)
      if (end === 'crash') await firefox?.crash()
      else if (end === 'navigation') await page.goto(`${stage.pages.origin}/settings.js`)
      if (end !== 'crash') await page.close()
      expected.push(...olderMarks(marks))
    }
    await open('/')
    await expectStored(stage, expected, 90_000)
    await expectNoneTwice(stage)
    expect(expected.length).toBeGreaterThan(100)
  })
})
