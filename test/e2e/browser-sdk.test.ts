import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Status } from '../../packages/browser/src/options.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import type { SdkPages } from '../support/pages/browser-sdk/serve-sdk-pages.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the browser package: missing ${browserFound.missing}`)

/** Runs in a page, and in the scope of app.ts. */
const inPage = <T>(page: Page, expression: string) => page.evaluate(expression) as Promise<T>

const CORE_BYTES = 35 * 1024
const RECORDER_BYTES = 30 * 1024

describe.skipIf('missing' in browserFound)('a page with three lines of the browser package', () => {
  let stage: SdkStage
  let pages: SdkPages
  let browser: TestBrowser
  let page: Page
  let session: string
  const complaints: string[] = []

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stage = await startSdkStage({ body: '<h1>Shop</h1><button id="buy">Buy</button><input id="name">' })
    pages = stage.pages
    browser = await startBrowser(browserFound.path)
    page = await browser.context.newPage()
    page.on('console', message => {
      if (message.type() === 'warning' || message.text().includes('Content Security Policy'))
        complaints.push(message.text())
    })
    await page.goto(`${pages.origin}/cart/17`)
    session = await inPage<string>(page, 'penstock.sessionId')
    await inPage(page, 'use()')
    await page.locator('#buy').click()
    await page.locator('#name').pressSequentially('a secret name', { delay: 5 })
    await inPage(page, 'penstock.flush()')
  })
  afterAll(async () => {
    await browser?.stop()
    await stage?.stop()
  })

  const rows = <T>(query: string) => stage.rows<T>(query)

  it('sends spans of the page load, requests and navigation, as traces that continue in the service', async () => {
    const found = await until('the spans are stored', async () => {
      const spans = await rows<{ name: string; trace: string; parent: string; kind: number; status: number }>(
        `SELECT name, lower(hex(trace_id)) AS trace, lower(hex(parent_span_id)) AS parent, kind, http_status_code AS status FROM spans
         WHERE session_id = '${session}'`,
      )
      return ['page load /cart/17', 'document fetch', 'POST', 'GET', 'navigation /checkout'].every(name =>
        spans.some(span => span.name === name),
      )
        ? spans
        : undefined
    })
    const load = found.find(({ name }) => name === 'page load /cart/17')
    const post = found.find(({ name }) => name === 'POST')
    expect(post).toMatchObject({ trace: load?.trace, kind: 3, status: 200 })
    expect(found.find(({ name }) => name === 'GET')).toMatchObject({ status: 500 })
    expect(pages.traceparents.map(header => header.split('-')[1])).toEqual([load?.trace, load?.trace])
    expect(pages.traceparents.every(header => /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/.test(header))).toBe(true)
    expect(found.filter(({ name }) => name.includes('telemetry'))).toEqual([])
  })

  it('sends what was caught and what was not as findings, with causes, release and environment', async () => {
    const found = await until('the exceptions are stored', async () => {
      const stored = await rows<{
        type: string
        message: string
        stack: string
        environment: string
        escaped: boolean
      }>(
        `SELECT type, message, stacktrace AS stack, environment, escaped FROM exceptions
         WHERE session_id = '${session}' ORDER BY message`,
      )
      return stored.length >= 3 ? stored : undefined
    })
    expect(found.map(({ type, message }) => `${type}: ${message}`)).toEqual([
      'Error: nor this',
      'RangeError: not caught',
      'Error: the quote failed',
    ])
    expect(found[2]?.stack).toContain('Caused by: TypeError: no price')
    expect(found.map(({ environment, escaped }) => [environment, escaped])).toEqual([
      ['test', true],
      ['test', true],
      ['test', false],
    ])
    const [log] = await rows(
      `SELECT service_name AS service, service_version AS version FROM exceptions WHERE session_id = '${session}' LIMIT 1`,
    )
    expect(log).toEqual({ service: 'shop-page', version: '1.4.2' })
  })

  it('sends errors of the console as log records, and web vitals as metrics', async () => {
    await until('the log record is stored', async () => {
      const logs = await rows<{ body: string }>(`SELECT body FROM logs WHERE session_id = '${session}'`)
      return logs.some(({ body }) => body === 'the cart is {"empty":true}')
    })
    await until('web vitals are stored', async () => {
      const names = await rows<{ name: string }>('SELECT DISTINCT metric_name AS name FROM metric_points')
      return ['browser.web_vital.fcp', 'browser.web_vital.ttfb'].every(name => names.some(row => row.name === name))
    })
  })

  it('sends identity, device and recording, in which what was typed is masked', async () => {
    await until('the identity is stored', async () => {
      const [identity] = await rows(
        `SELECT identifier, name, email, source_name FROM session_identities WHERE session_id = '${session}'`,
      )
      return identity as Record<string, string> | undefined
    }).then(identity =>
      expect(identity).toEqual({
        identifier: 'user-42',
        name: 'Anna',
        email: 'anna@example.org',
        source_name: 'shop-page',
      }),
    )
    const [device] = await rows<{ device_id: string }>(
      `SELECT device_id FROM session_heartbeats WHERE session_id = '${session}'`,
    )
    expect(device?.device_id).toMatch(/^[0-9a-f-]{36}$/)
    const chunks = await until('the recording is stored', async () => {
      const stored = await rows<{ segment: number; snapshot: boolean; events: number }>(
        `SELECT segment_number AS segment, has_full_snapshot AS snapshot, event_count AS events FROM replay_chunks
         WHERE session_id = '${session}' ORDER BY segment`,
      )
      return stored.length >= 1 ? stored : undefined
    })
    expect(chunks[0]).toMatchObject({ segment: 0, snapshot: true })
    const events = await until('what was typed has arrived', () => {
      const sent = pages.telemetry.filter(({ path }) => path.startsWith('/v3/replay/'))
      const text = sent.map(chunk => chunk.text).join('')
      return text.includes('*************') ? text : undefined
    })
    expect(events).toContain('"tagName":"button"')
    expect(events).not.toContain('secret')
  })

  it('states what became of its requests, and the service misses none', async () => {
    const status = await until('all receipts show that their requests are stored', async () => {
      const shown = await inPage<Status>(page, 'penstock.status()')
      return shown.waiting === 0 && shown.stored === shown.sent ? shown : undefined
    })
    expect(status).toMatchObject({ session, waiting: 0, lost: 0, spool: 'disk', acknowledged: status.sent })
    const numbers = await rows<{ numbers: number[] }>(
      'SELECT arraySort(groupArray(sequence)) AS numbers FROM page_requests GROUP BY page_id',
    )
    for (const { numbers: found } of numbers) expect(found).toEqual(found.map((_, i) => i))
  })

  it('needs nothing that a strict content security policy refuses, and says nothing on the console', () => {
    expect(complaints).toEqual([])
  })

  it('is small, and loads the recorder after the page is painted', async () => {
    const { outputs } = pages.metafile
    const entry = Object.entries(outputs).find(([path]) => path.endsWith('/app.js'))
    const eager = new Set([entry?.[0].split('/').at(-1)])
    for (const { path, kind } of entry?.[1].imports ?? []) {
      if (kind === 'import-statement') eager.add(path.split('/').at(-1))
    }
    const sizes = { eager: 0, lazy: 0 }
    for (const [path, contents] of pages.scripts) {
      sizes[eager.has(path.split('/').at(-1)) ? 'eager' : 'lazy'] += gzipSync(contents).length
    }
    console.log(`gzip: core ${sizes.eager} B, recorder ${sizes.lazy} B`)
    expect(sizes.eager).toBeLessThanOrEqual(CORE_BYTES)
    expect(sizes.lazy).toBeGreaterThan(10_000)
    expect(sizes.lazy).toBeLessThanOrEqual(RECORDER_BYTES)
    const times = await inPage<{ paint: number; recorder: number }>(page, 'times()')
    expect(times.recorder).toBeGreaterThan(times.paint)
  })

  it('leaves the page as it was when it stops', async () => {
    const other = await browser.context.newPage()
    await other.goto(`${pages.origin}/`)
    expect(await inPage(other, 'stop()')).toEqual(Array(6).fill(true))
    const before = pages.telemetry.length
    await inPage(other, "fetch('/api/quote').then(() => undefined)")
    await other.close()
    expect(pages.telemetry.length).toBe(before)
  })
})
