import type { Page } from 'playwright-core'

const DEADLINE_MS = 30_000

/**
 * Code of the page, as text: the policy of the console lets no page compile any, and the debugger evaluates it. A time is that of
 * the task after the next frame, when what was rendered is painted.
 */
const HELPERS = `
  const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))
  const until = test => new Promise(done => {
    if (test()) return done()
    const observer = new MutationObserver(() => {
      if (!test()) return
      observer.disconnect()
      done()
    })
    observer.observe(document.documentElement, { childList: true, subtree: true, attributes: true })
  })
  const follow = path => {
    const link = document.createElement('a')
    link.href = path
    document.body.append(link)
    link.click()
    link.remove()
  }
  const rowCount = () => Number(document.querySelector('[role=treegrid]')?.getAttribute('aria-rowcount') ?? 0)
  const button = text => [...document.querySelectorAll('.wf-tools button')].find(found => found.textContent === text)`

/** Runs code in the page. Throws with the text of the page if what it waits for does not appear in time. */
async function run<T>(page: Page, code: string): Promise<T> {
  // A tab in the background has no frames.
  await page.bringToFront()
  const result = await page.evaluate<T | undefined>(
    `Promise.race([(async () => { ${HELPERS}\n${code} })(), new Promise(done => setTimeout(done, ${DEADLINE_MS}))])`,
  )
  if (result !== undefined) return result
  const text = await page.evaluate('document.querySelector("main")?.textContent')
  throw new Error(`the page did not show what was expected: ${String(text).slice(0, 300)}`)
}

/** Times of opening a trace. */
export interface OpenedTrace {
  /** From the first byte of the response until the rows are painted. */
  readonly afterFirstByteMs: number
  /** From following the link. */
  readonly wholeMs: number
}

/** Opens a trace from another page of the console. */
export function openTrace(page: Page, traceId: string): Promise<OpenedTrace> {
  return run(
    page,
    `follow('/console/pipeline')
     await until(() => document.querySelector('h1')?.textContent.startsWith('Pipeline'))
     performance.clearResourceTimings()
     const begun = performance.now()
     follow('/console/traces/${traceId}')
     await until(() => document.querySelector('.wf-row') !== null)
     const at = await painted()
     const entry = performance.getEntriesByType('resource').find(({ name }) => name.includes('/v3/traces/${traceId}'))
     return { afterFirstByteMs: at - entry.responseStart, wholeMs: at - begun }`,
  )
}

/** Collapses all spans of the trace that is open, and expands them again. Milliseconds of the first. */
export function collapseAll(page: Page): Promise<number> {
  return run(
    page,
    `const all = rowCount()
     const begun = performance.now()
     button('Collapse all').click()
     await until(() => rowCount() < all)
     const ms = (await painted()) - begun
     button('Expand all').click()
     await until(() => rowCount() === all)
     await painted()
     return ms`,
  )
}

/** Times of scrolling. */
export interface Scrolled {
  /** Tasks of more than 50 ms. */
  readonly longTasks: number
  /** 99th percentile of the time between two frames. */
  readonly frameMs: number
}

/** Scrolls from the top of the trace to its end, in 200 frames. */
export function scrollThrough(page: Page): Promise<Scrolled> {
  return run(
    page,
    `const scroller = document.querySelector('.wf-scroll')
     let longTasks = 0
     const observer = new PerformanceObserver(list => { longTasks += list.getEntries().length })
     observer.observe({ entryTypes: ['longtask'] })
     const frames = []
     let before = await painted()
     for (let i = 1; i <= 200; i++) {
       scroller.scrollTop = ((scroller.scrollHeight - scroller.clientHeight) * i) / 200
       await new Promise(requestAnimationFrame)
       frames.push(performance.now() - before)
       before = performance.now()
     }
     await painted()
     longTasks += observer.takeRecords().length
     observer.disconnect()
     frames.sort((a, b) => a - b)
     return { longTasks, frameMs: frames[197] }`,
  )
}

/** Opens the findings from another page of the console. Milliseconds until the first page of them is painted. */
export function openFindings(page: Page): Promise<number> {
  return run(
    page,
    `follow('/console/pipeline')
     await until(() => document.querySelector('h1')?.textContent.startsWith('Pipeline'))
     const begun = performance.now()
     follow('/console/findings')
     await until(() => document.querySelector('h1')?.textContent.startsWith('Findings') && document.querySelector('.list tbody tr'))
     return (await painted()) - begun`,
  )
}

/** Loads a page of nothing but rows. Milliseconds from its first byte until all are painted. */
export async function openPlainRows(page: Page, url: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' })
  return run(
    page,
    `await until(() => document.readyState !== 'loading' && document.querySelector('#last'))
     return (await painted()) - performance.getEntriesByType('navigation')[0].responseStart`,
  )
}

/** Serves a page of this many rows at this address, to pages of the same browser. */
export async function servePlainRows(page: Page, url: string, rows: number): Promise<void> {
  const row = '<div style="height:26px">service 1 operation 1 <span>5 ms</span></div>'
  const body = `<!doctype html><title>Rows</title>${row.repeat(rows)}<i id="last"></i>`
  await page.route(url, route => route.fulfill({ contentType: 'text/html', body }))
}
