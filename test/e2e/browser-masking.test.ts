import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { CHANGE_MASKED_PAGE, FORMED, MASKED_PAGE, PUBLIC, SECRET } from '../support/pages/browser-sdk/masked-page.ts'
import { type SdkPages, serveSdkPages } from '../support/pages/browser-sdk/serve-sdk-pages.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of masking: missing ${browserFound.missing}`)

describe.skipIf('missing' in browserFound)('a recorded page', () => {
  let stack: Stack
  let pages: SdkPages
  let browser: TestBrowser

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startStack()
    const { ingestUrl, apiUrl, secrets } = stack
    pages = await serveSdkPages({
      ...{ ingestUrl, apiUrl, key: secrets.publicKey, body: MASKED_PAGE },
      options: { recording: { sample: 1, mask: '.private' } },
      policy: "default-src 'self'; style-src 'self' 'unsafe-inline'",
    })
    browser = await startBrowser(browserFound.path)
  })
  afterAll(async () => {
    await browser?.stop()
    await pages?.stop()
    await stack?.stop()
  })

  it('sends no text of an input, a card, or a masked element, however it changes', async () => {
    const page = await browser.context.newPage()
    await page.goto(`${pages.origin}/`)
    const sent = () =>
      pages.telemetry.map(({ body }) => (body[0] === 0x1f ? gunzipSync(body) : body).toString('utf8')).join('\n')
    await until('the page is recorded', () => sent().includes('"type":2'))
    await page.evaluate(CHANGE_MASKED_PAGE)
    for (const name of ['text', 'password', 'email'])
      await page.locator(`#in-${name}`).pressSequentially(`${SECRET}${name}`)
    await page.locator('#editable').pressSequentially(`${SECRET}-pressed`)
    await page.locator('#select').selectOption({ index: 0 })
    await page.evaluate('penstock.flush()')
    const text = await until('the last change has arrived', () =>
      sent().includes(`${PUBLIC}-changed`) ? sent() : undefined,
    )
    const found = [...text.matchAll(new RegExp(`.{80}(?:${[SECRET, ...FORMED].join('|')}).{40}`, 'g'))].map(
      ([match]) => match,
    )
    expect(found).toEqual([])
    expect(text).toContain(PUBLIC)
    expect(text.match(/\*{6}/g)?.length).toBeGreaterThan(40)
  })
})
