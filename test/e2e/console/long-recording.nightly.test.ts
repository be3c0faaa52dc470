import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOUR_MS, MIB } from '../../../schemas/units.ts'
import { openPrintedLink } from '../../support/console/console-page.ts'
import { windowOf } from '../../support/console/long-recording.ts'
import { pictureText } from '../../support/console/player-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { stageLongRecording } from '../../support/console/stage-long-recording.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of long recordings: missing ${browserFound.missing}`)

const SESSION = 'session-long'
const SECONDS = 7_200
const SEEKS = 25
/** Requests of events until the picture is shown: from the snapshot to the time, and some ahead. */
const REQUESTS_A_SEEK = 4
const HEAP_BYTES = 48 * MIB

describe.skipIf('missing' in browserFound)('a recording of two hours and three windows', () => {
  const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 3 * HOUR_MS
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    const { chunks, bytes } = await stageLongRecording(stack.credentials, SESSION, startMs, SECONDS)
    console.info(`${chunks} chunks, ${bytes} bytes of events`)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  it('shows its first picture', async () => {
    const begin = performance.now()
    await page.goto(stack.urlOf(`sessions/${SESSION}`))
    await until('the first picture', async () => (await pictureText(page)) === 'second 0 of tab-1', { everyMs: 5 })
    console.info(`first picture ${Math.round(performance.now() - begin)} ms after the navigation`)
  })

  it('shows what was to be seen at any time that is chosen', async () => {
    const bar = await page.getByRole('slider', { name: 'Time of the recording' }).boundingBox()
    if (!bar) throw new Error('there is no seek bar')
    const took: number[] = []
    let requestsMax = 0
    for (let i = 1; i <= SEEKS; i++) {
      // Steps of the golden ratio reach all parts, in no order.
      const share = (i * 0.618_033_988) % 1
      const before = stack.requests.length
      const begin = performance.now()
      await page.mouse.click(bar.x + share * bar.width, bar.y + 4)
      const at = Date.parse(await page.evaluate<string>("new URLSearchParams(location.search).get('t')"))
      const second = Math.min(Math.floor((at - startMs) / 1_000), SECONDS - 1)
      const expected = `second ${second} of ${windowOf(second)}`
      await until(expected, async () => (await pictureText(page)) === expected, { everyMs: 5 }).catch(async cause => {
        throw new Error(`${expected} is not shown, but ${await pictureText(page)}`, { cause })
      })
      took.push(performance.now() - begin)
      requestsMax = Math.max(
        requestsMax,
        stack.requests.slice(before).filter(url => url.includes('/replay/events')).length,
      )
    }
    took.sort((a, b) => a - b)
    const atShare = (share: number) => Math.round(took[Math.ceil(took.length * share) - 1] ?? 0)
    console.info(`${SEEKS} seeks: p50 ${atShare(0.5)} ms, p95 ${atShare(0.95)} ms; ${requestsMax} requests at most`)
    expect(requestsMax).toBeLessThanOrEqual(REQUESTS_A_SEEK)
  }, 90_000)

  it('takes little memory', async () => {
    const client = await page.context().newCDPSession(page)
    await client.send('HeapProfiler.enable')
    await client.send('HeapProfiler.collectGarbage')
    const { usedSize } = await client.send('Runtime.getHeapUsage')
    console.info(`heap: ${usedSize} bytes`)
    expect(usedSize).toBeLessThan(HEAP_BYTES)
  })
})
