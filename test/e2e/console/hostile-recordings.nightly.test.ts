import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOUR_MS } from '../../../schemas/units.ts'
import { openPrintedLink } from '../../support/console/console-page.ts'
import { hostileRecording, type Mark } from '../../support/console/hostile-recordings/recording.ts'
import { startTrap, TRAP_HOST, type Trap } from '../../support/console/hostile-recordings/trap.ts'
import { pictureText, stageOf } from '../../support/console/player-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { uploadChunk } from '../../support/console/staged-recording.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of hostile recordings: missing ${browserFound.missing}`)

const SESSION = 'session-hostile'
/** A text in the log of the browser, between the part with the policy and the one without. */
const LOOSENED = 'from-here-on-without-the-policy'

describe.skipIf('missing' in browserFound)('hostile recordings', () => {
  const startMs = Date.now() - HOUR_MS
  const ran: string[] = []
  let stack: ConsoleStack
  let trap: Trap
  let page: Page
  let marks: readonly Mark[]
  let logDirectory: string

  beforeAll(async () => {
    if ('missing' in browserFound) return
    logDirectory = await mkdtemp(join(tmpdir(), 'penstock-netlog-'))
    trap = await startTrap()
    stack = await startConsoleStack(browserFound.path, [`--log-net-log=${join(logDirectory, 'log.json')}`])
    const access = stack.credentials
    const recording = hostileRecording(startMs, trap)
    marks = recording.marks
    for (const chunk of recording.chunks) await uploadChunk(access, SESSION, chunk)
    const headers = { authorization: `Bearer ${access.sessionToken}` }
    await until('everything is stored', async () => {
      const response = await fetch(`${access.baseUrl}/v3/sessions/${SESSION}/replay?limit=500`, { headers })
      if (!response.ok) return false
      return ((await response.json()) as { chunks: unknown[] }).chunks.length === recording.chunks.length
    })
    page = await stack.openPage()
    page.on('console', message => /RAN \d/.test(message.text()) && ran.push(message.text()))
    page.on('dialog', dialog => {
      ran.push(`dialog ${dialog.message()}`)
      void dialog.dismiss()
    })
    stack.browser.context.on('page', opened => opened !== page && ran.push(`opened ${opened.url()}`))
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(async () => {
    await stack?.stop()
    await trap?.close()
    if (logDirectory) await rm(logDirectory, { recursive: true, force: true })
  })

  /** Plays all attacks, step by step, and clicks on each. Returns the names of those that were not survived. */
  async function playAll(): Promise<string[]> {
    await page.goto(stack.urlOf(`sessions/${SESSION}?t=${new Date(startMs).toISOString()}`))
    const slider = page.getByRole('slider', { name: 'Time of the recording' })
    await slider.focus()
    const failed: string[] = []
    for (const [i, { attack, text }] of marks.entries()) {
      if (failed.length >= 3) break
      if (i > 0) await slider.press('ArrowRight')
      const isShown = await until(text, async () => (await pictureText(page)) === text, { deadlineMs: 5_000 }).catch(
        () => false,
      )
      if (!isShown) failed.push(`${attack}: ${text} is not shown, but ${await pictureText(page)}`)
    }
    return failed
  }

  it('run no script and reach no server, and the page survives each of them', async () => {
    expect(marks.length / 3).toBeGreaterThan(60)
    expect(await playAll()).toEqual([])
    expect(ran).toEqual([])
    expect(trap.caught).toEqual([])
    expect(await page.evaluate('document.title')).toBe('Session · Penstock')
    expect(await page.evaluate('({}).polluted')).toBeUndefined()
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(await page.getByText('cannot be shown').count()).toBe(0)
    expect(stack.complaints.filter(text => text.includes('RangeError'))).toEqual([])
  }, 120_000)

  it('are not reached by the viewer: neither by a click nor by keys', async () => {
    const link = marks.findIndex(({ attack }) => attack === 'links that are clicked')
    await page.goto(stack.urlOf(`sessions/${SESSION}?t=${new Date(startMs + (link / 3) * 15_000).toISOString()}`))
    await until('the link is shown', async () => (await pictureText(page)) === marks[link]?.text)
    const box = await page.locator('.screen-picture').boundingBox()
    if (!box) throw new Error('there is no picture')
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2, { button: 'middle' })
    await page.getByRole('link', { name: 'Log records of the session' }).focus()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.getAttribute("role")')).toBe('slider')
    expect(ran).toEqual([])
    expect(trap.caught).toEqual([])
  })

  it('cannot see the console from the stage, which has an opaque origin', async () => {
    const seen = await stageOf(page)?.evaluate(`(async () => {
      const attempt = look => { try { return String(look()) } catch (error) { return error.name } }
      const request = await fetch('${stack.urlOf('')}').then(() => 'sent', error => error.name)
      return {
        origin: self.origin,
        parent: attempt(() => parent.document),
        top: attempt(() => top.document),
        storage: attempt(() => localStorage),
        cookie: attempt(() => document.cookie),
        request,
      }
    })()`)
    const refused = 'SecurityError'
    expect(seen).toEqual({
      origin: 'null',
      parent: refused,
      top: refused,
      storage: refused,
      cookie: refused,
      request: 'TypeError',
    })
  })

  it('connect to the trap when the policy of the player is loosened', async () => {
    await page.goto(stack.urlOf(`findings?q=${LOOSENED}`))
    await page.getByRole('heading', { name: 'No findings yet' }).waitFor()
    const client = await page.context().newCDPSession(page)
    await client.send('Page.setBypassCSP', { enabled: true })
    await playAll()
    const reached = new Set(trap.caught.flatMap(text => /\/v(\d+)/.exec(text)?.[1] ?? []))
    console.info(`without the policy, ${reached.size} attacks reach the trap in ${trap.caught.length} connections`)
    expect(reached.size).toBeGreaterThan(5)
  }, 120_000)

  it('had no name looked up, by the log of the browser, before that', async () => {
    await stack.browser.context.close()
    const log = await readFile(join(logDirectory, 'log.json'), 'utf8')
    const end = log.indexOf(LOOSENED)
    expect(end).toBeGreaterThan(0)
    expect(log.indexOf(TRAP_HOST, end)).toBeGreaterThan(end)
    const at = log.slice(0, end).indexOf(TRAP_HOST)
    expect(at < 0 ? undefined : log.slice(at - 500, at + 100)).toBeUndefined()
  })
})
