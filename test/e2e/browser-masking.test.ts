import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { CHANGE_MASKED_PAGE, FORMED, MASKED_PAGE, PUBLIC, SECRET } from '../support/pages/browser-sdk/masked-page.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of masking: missing ${browserFound.missing}`)

describe.skipIf('missing' in browserFound)('a recorded page', () => {
  let stage: SdkStage
  let browser: TestBrowser

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stage = await startSdkStage({
      body: MASKED_PAGE,
      options: { recording: { sample: 1, mask: '.private' } },
      policy: "default-src 'self'; style-src 'self' 'unsafe-inline'",
    })
    browser = await startBrowser(browserFound.path)
  })
  afterAll(async () => {
    await browser?.stop()
    await stage?.stop()
  })

  it('sends no text of an input, a card, or a masked element, however it changes', async () => {
    const { pages } = stage
    const page = await browser.context.newPage()
    await page.goto(`${pages.origin}/`)
    const sent = () => pages.telemetry.map(({ text }) => text).join('\n')
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
