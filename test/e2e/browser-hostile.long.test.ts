import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Status } from '../../packages/browser/src/options.ts'
import { generateKey } from '../../shared/ids/credentials.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of hostile pages: missing ${browserFound.missing}`)

/** Adds and removes 100,000 elements a second for three seconds, in steps of a frame. Returns how many steps it made. */
const STORM = `(async () => {
  const host = document.createElement('div')
  document.body.append(host)
  let steps = 0
  for (const end = performance.now() + 3000; performance.now() < end; steps++) {
    host.replaceChildren(...Array.from({ length: 1700 }, (_, i) => Object.assign(document.createElement('i'), { textContent: i })))
    await new Promise(requestAnimationFrame)
  }
  host.replaceChildren()
  document.title = 'calm again'
  return steps
})()`

/** A page of 50 MB in few elements, and one of many elements. */
const HEAVY = {
  bytes: `document.body.append(Object.assign(document.createElement('p'), { textContent: 'x'.repeat(50e6), hidden: true }))`,
  nodes: `document.body.insertAdjacentHTML('beforeend', '<div hidden>' + '<i></i>'.repeat(120000) + '</div>')`,
}

/** Storage that does not respond, or that refuses everything. */
const FROZEN = `
  IDBFactory.prototype.open = () => new EventTarget()
  Storage.prototype.getItem = Storage.prototype.setItem = () => { throw new DOMException('denied', 'SecurityError') }`

/** Sets the clock of the page forward by two days, then back by an hour. */
const CLOCK_JUMPS = `
  const now = Date.now
  let jump = 0
  Date.now = () => now() + jump
  setTimeout(() => { jump = 2 * 86400e3 }, 400)
  setTimeout(() => { jump = -3600e3 }, 1200)`

describe.skipIf('missing' in browserFound)('a hostile page', () => {
  let stage: SdkStage
  let browser: TestBrowser

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stage = await startSdkStage({ policy: "default-src 'self'" })
    browser = await startBrowser(browserFound.path)
  })
  afterAll(async () => {
    await browser?.stop()
    await stage?.stop()
  })

  /** Opens a page on which scripts run before its own. */
  async function open(before = ''): Promise<{ page: Page; faults: string[]; recorded: () => string }> {
    const { pages } = stage
    // Pages share a session, but only one is open at a time.
    const from = pages.telemetry.length
    const page = await browser.context.newPage()
    const faults: string[] = []
    page.on('pageerror', error => faults.push(String(error)))
    if (before !== '') await page.addInitScript(before)
    await page.goto(`${pages.origin}/`)
    const isChunk = ({ path }: { path: string }) => path.startsWith('/v3/replay/')
    return {
      page,
      faults,
      recorded: () =>
        pages.telemetry
          .slice(from)
          .filter(isChunk)
          .map(({ text }) => text)
          .join(''),
    }
  }

  const snapshots = (text: string) => text.split('{"type":2,').length - 1
  const status = (page: Page) => page.evaluate('penstock.status()') as Promise<Status>

  it('of 100,000 changes a second does its work, and its recording pauses and continues with a snapshot', async () => {
    const { page, faults, recorded } = await open()
    await until('the page is recorded', () => snapshots(recorded()) > 0)
    const steps = (await page.evaluate(STORM)) as number
    expect(steps).toBeGreaterThan(10)
    const text = await until('the recording continues', () => (snapshots(recorded()) > 1 ? recorded() : undefined))
    expect(text).toMatch(/"tag":"penstock\.limit","payload":\{"reason":"mutations","found":\d+\}/)
    // The beginning of the storm is recorded, until it is noticed.
    expect(text.length).toBeLessThan(5_000_000)
    expect(faults).toEqual([])
    await page.close()
  })

  it.each(['bytes', 'nodes'] as const)(
    'that is too large is used without a recording, which says why: %s',
    async reason => {
      const { page, faults, recorded } = await open(`addEventListener('DOMContentLoaded', () => { ${HEAVY[reason]} })`)
      const text = await until('the limit is recorded', () =>
        recorded().includes('penstock.limit') ? recorded() : undefined,
      )
      expect(text).toContain(`"reason":"${reason}"`)
      expect(snapshots(text)).toBe(0)
      await page.evaluate("penstock.log('info', 'works')")
      await page.evaluate('penstock.flush()')
      expect(await status(page)).toMatchObject({ waiting: 0, lost: 0 })
      expect(faults).toEqual([])
      await page.close()
    },
  )

  it('whose storage is frozen sends from memory', async () => {
    const { page, faults } = await open(FROZEN)
    await page.evaluate("penstock.log('info', 'frozen')")
    const found = await until('everything is acknowledged', async () => {
      const state = await status(page)
      return state.acknowledged > 1 && state.waiting === 0 ? state : undefined
    })
    expect(found).toMatchObject({ spool: 'memory', lost: 0 })
    expect(faults).toEqual([])
    await page.close()
  })

  it('whose clock jumps has another session, and loses nothing', async () => {
    const { page, faults } = await open(CLOCK_JUMPS)
    const before = await page.evaluate('penstock.sessionId')
    await until('a session has ended', async () => (await page.evaluate('penstock.sessionId')) !== before)
    await page.evaluate("penstock.log('info', 'after the jump')")
    const found = await until('everything is acknowledged', async () => {
      const state = await status(page)
      return state.waiting === 0 && state.sent > 2 ? state : undefined
    })
    expect(found.lost).toBe(0)
    expect(faults).toEqual([])
    await page.close()
  })

  it('whose consent is withdrawn leaves nothing in the browser, not even when it ends', async () => {
    const { page, recorded } = await open()
    await until('the page is recorded', () => snapshots(recorded()) > 0)
    const kept = () => page.evaluate('[...Object.keys(localStorage), ...Object.keys(sessionStorage)]')
    expect(await kept()).toContain('penstock.session')
    await page.evaluate('penstock.consent(false)')
    expect(await kept()).toEqual([])
    await page.goto(`${stage.pages.origin}/settings.js`)
    expect(await kept()).toEqual([])
    await page.close()
  })

  it.each([
    ['that is none of a page', 'sk_1', /nothing is sent: key must be the public key of a surface/],
    ['that is unknown', generateKey('public'), /nothing is sent any more: the service refuses the key \(401\)/],
  ])('with a key %s works, and says why nothing is sent', async (_, key, warning) => {
    const page = await browser.context.newPage()
    const warnings: string[] = []
    page.on('console', message => {
      if (message.type() === 'warning') warnings.push(message.text())
    })
    const body = `globalThis.settings = ${JSON.stringify({ key })}`
    await page.route('**/settings.js', route => route.fulfill({ contentType: 'text/javascript', body }))
    await page.goto(`${stage.pages.origin}/`)
    await until('the page says why', () => warnings.length > 0)
    expect(warnings).toEqual([expect.stringMatching(warning)])
    expect(await page.evaluate("fetch('/api/quote').then(answer => answer.status)")).toBe(200)
    await page.close()
  })

  it('has no task of the package over 50 ms at its start, and listeners of a click take 2 ms at most', async () => {
    const tasks: number[] = []
    const clicks: number[] = []
    // The machine may be busy: the best of five runs counts.
    for (let i = 0; i < 5; i++) {
      const { page, recorded } = await open(`
        globalThis.longest = 0
        globalThis.observer = new PerformanceObserver(list => {
          for (const { duration } of list.getEntries()) longest = Math.max(longest, duration)
        })
        observer.observe({ type: 'longtask', buffered: true })`)
      await until('the page is recorded', () => snapshots(recorded()) > 0)
      tasks.push((await page.evaluate('longest')) as number)
      clicks.push(
        (await page.evaluate(`(() => {
          const button = document.querySelector('#buy')
          const times = Array.from({ length: 200 }, () => {
            const from = performance.now()
            button.dispatchEvent(new MouseEvent('click', { bubbles: true }))
            return performance.now() - from
          })
          return times.sort((a, b) => a - b)[189]
        })()`)) as number,
      )
      // A task that is long is noticed.
      await page.evaluate(`setTimeout(() => {
        for (const from = performance.now(); performance.now() - from < 80; );
      }, 0)`)
      await until('the long task is noticed', async () => ((await page.evaluate('longest')) as number) >= 80)
      await page.close()
    }
    console.log(`longest task at start ${Math.min(...tasks)} ms, p95 of a click ${Math.min(...clicks)} ms`)
    expect(Math.min(...tasks)).toBeLessThanOrEqual(50)
    expect(Math.min(...clicks)).toBeLessThanOrEqual(2)
  })
})
