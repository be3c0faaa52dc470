import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { newTraceId, type StagedSpan, send, spanIdOf, traceExport } from '../../support/console/staged-telemetry.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the waterfall: missing ${browserFound.missing}`)

const SPANS = 100_000
const SPANS_A_REQUEST = 5_000
/** Children of each span. */
const CHILDREN = 7
const HEAP_BYTES = 60 * MIB
const ROW_ELEMENTS = 150

const nameOf = (span: number) => (span === 77_777 ? 'the needle' : `operation ${span}`)

/** The spans in the order of their rows, each before its children: another algorithm than that of the page. */
function expectedOrder(): number[] {
  const order: number[] = []
  const visit = (span: number) => {
    order.push(span)
    for (let child = span * CHILDREN + 1; child <= span * CHILDREN + CHILDREN && child < SPANS; child++) visit(child)
  }
  visit(0)
  return order
}

describe.skipIf('missing' in browserFound)(`a trace of ${SPANS} spans`, () => {
  const traceId = newTraceId()
  const order = expectedOrder()
  let stack: ConsoleStack
  let page: Page

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    const { baseUrl, publicKey, sessionToken } = stack.credentials
    const startMs = Date.now() - 60_000
    for (let from = 0; from < SPANS; from += SPANS_A_REQUEST) {
      const spans = Array.from({ length: SPANS_A_REQUEST }, (_, i) => stagedSpan(from + i))
      await send({ baseUrl, publicKey }, 'traces', traceExport(traceId, startMs, spans))
    }
    const headers = { authorization: `Bearer ${sessionToken}` }
    await until(
      'all spans are stored',
      async () => {
        const response = await fetch(`${baseUrl}/v3/traces/${traceId}`, { headers })
        return response.ok && ((await response.json()) as { spanCount: number }).spanCount === SPANS
      },
      { deadlineMs: 90_000, everyMs: 500 },
    )
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(() => stack?.stop())

  const rowCount = async () => Number(await page.getByRole('treegrid').getAttribute('aria-rowcount')) - 1
  /** Rows that are elements: their index among all rows, and their text. */
  const rows = () =>
    page.locator('.wf-row').evaluateAll(elements =>
      elements.map(element => ({
        index: Number(element.getAttribute('aria-rowindex')) - 2,
        text: element.textContent ?? '',
      })),
    )
  const expectRowsAsExpected = async () => {
    const shown = await rows()
    expect(shown.length).toBeGreaterThan(10)
    expect(shown.length).toBeLessThan(ROW_ELEMENTS)
    for (const { index, text } of shown) expect(text).toContain(nameOf(order[index] as number))
    return shown.map(({ index }) => index)
  }

  it('shows all its rows, of which few are elements', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}`))
    await page.getByRole('treegrid').waitFor()
    expect(await rowCount()).toBe(SPANS)
    expect(await expectRowsAsExpected()).toContain(0)
    await takePictures(page, 'trace-100000')
    expect(await violations(page)).toEqual([])
  })

  it('shows the rows of every part of it, to the last', async () => {
    for (const share of [0.1, 0.33, 0.5, 0.9, 1]) {
      await page.locator('.wf-scroll').evaluate((element, part) => {
        element.scrollTop = (element.scrollHeight - element.clientHeight) * part
      }, share)
      const wanted = Math.round((SPANS - 30) * share) + 10
      await until(`the row ${wanted} is an element`, async () => (await rows()).some(({ index }) => index === wanted))
      await expectRowsAsExpected()
    }
    expect((await rows()).map(({ index }) => index)).toContain(SPANS - 1)
  })

  it('folds and unfolds all', async () => {
    await page.getByRole('button', { name: 'Collapse all' }).click()
    expect(await rowCount()).toBe(1)
    await page.getByRole('row', { level: 1 }).focus()
    await page.keyboard.press('ArrowRight')
    expect(await rowCount()).toBe(1 + CHILDREN)
    await page.getByRole('button', { name: 'Expand all' }).click()
    expect(await rowCount()).toBe(SPANS)
  })

  it('goes to the row of the overview that is clicked', async () => {
    const { x, y, width, height } = (await page.locator('.minimap').boundingBox()) ?? {
      x: 0,
      y: 0,
      width: 0,
      height: 0,
    }
    await page.mouse.click(x + width / 2, y + height / 2)
    const wanted = Math.round(SPANS / 2)
    await until('a row of the middle is an element', async () =>
      (await rows()).some(({ index }) => Math.abs(index - wanted) < SPANS / 20),
    )
    await expectRowsAsExpected()
  })

  it('finds a span among all, and unfolds what is above it', async () => {
    await page.getByRole('button', { name: 'Collapse all' }).click()
    await page.getByRole('searchbox').fill('NEEDLE')
    await page.getByText('1 found').waitFor()
    await page.getByRole('button', { name: 'Next' }).last().click()
    const found = page.getByRole('row', { name: /the needle/ })
    await found.waitFor()
    expect(await found.getAttribute('aria-selected')).toBe('true')
    await page.getByRole('complementary').getByText('the needle').waitFor()
    expect(new URL(page.url()).searchParams.get('span')).toBe(spanIdOf(77_777))
  })

  it.each([0, 4_321, 50_000, 99_999])('lands on the span %i', async span => {
    await page.goto(stack.urlOf(`traces/${traceId}?span=${spanIdOf(span)}`))
    const row = page.getByRole('row', { selected: true })
    await row.waitFor()
    expect(await row.textContent()).toContain(nameOf(span))
    const isInView = await row.evaluate(element => {
      const inner = element.getBoundingClientRect()
      const outer = element.closest('.wf-scroll')?.getBoundingClientRect()
      return outer !== undefined && inner.top >= outer.top && inner.bottom <= outer.bottom
    })
    expect(isInView).toBe(true)
  })

  it('takes little memory', async () => {
    await page.goto(stack.urlOf(`traces/${traceId}`))
    await page.getByRole('treegrid').waitFor()
    const client = await page.context().newCDPSession(page)
    await client.send('HeapProfiler.enable')
    await client.send('HeapProfiler.collectGarbage')
    const { usedSize, backingStorageSize } = (await client.send('Runtime.getHeapUsage')) as {
      usedSize: number
      backingStorageSize?: number
    }
    console.info(`heap: ${usedSize} bytes, ${backingStorageSize} of arrays`)
    expect(usedSize + (backingStorageSize ?? 0)).toBeLessThan(HEAP_BYTES)
  })

  it('compresses the idle time of a trace on demand', async () => {
    const idle = newTraceId()
    const span = (id: number, startMs: number, ms: number) => ({
      id: spanIdOf(id),
      ...(id > 0 && { parent: spanIdOf(0) }),
      ...{ name: `step ${id}`, service: 'shop', startMs, ms },
    })
    const spans = [span(0, 0, 60_000), span(1, 0, 300), span(2, 59_000, 900)]
    await send(stack.credentials, 'traces', traceExport(idle, Date.now() - 60_000, spans))
    await until('the trace is stored', async () => {
      await page.goto(stack.urlOf(`traces/${idle}`))
      return page
        .getByRole('treegrid')
        .waitFor({ timeout: 1_000 })
        .then(
          () => true,
          () => false,
        )
    })
    const widthOf = () =>
      page
        .locator('.wf-row', { hasText: 'step 1' })
        .locator('.wf-bar')
        .evaluate(bar => bar.getBoundingClientRect().width)
    const before = await widthOf()
    await page.keyboard.press('i')
    await page.getByRole('button', { name: /^Idle 58.7 s compressed/, pressed: true }).waitFor()
    expect(await widthOf()).toBeGreaterThan(10 * before)
    await takePictures(page, 'trace-idle')
  })

  function stagedSpan(span: number): StagedSpan {
    return {
      id: spanIdOf(span),
      ...(span > 0 && { parent: spanIdOf(Math.floor((span - 1) / CHILDREN)) }),
      name: nameOf(span),
      service: `service ${span % 9}`,
      startMs: span * 0.01,
      ms: 5,
    }
  }
})
