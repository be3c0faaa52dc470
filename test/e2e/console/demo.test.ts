import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DemoLinks } from '../../../cli/demo/run-demo.ts'
import { type Truth, totalOf } from '../../../cli/demo/truth.ts'
import { findingsPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { logHistogramSchema } from '../../../schemas/http/logs.ts'
import { metricSeriesSchema } from '../../../schemas/http/metrics.ts'
import { sessionsPageSchema } from '../../../schemas/http/sessions/schemas.ts'
import { tracesPageSchema } from '../../../schemas/http/traces/search.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { stageOf } from '../../support/console/player-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the demo: missing ${browserFound.missing}`)

const HOURS = 2
const SESSIONS = 12

interface DemoRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program of `npm run demo` for the installation whose files are in this directory. */
function runDemo(localDir: string, ...options: string[]): Promise<DemoRun> {
  const words = ['cli/main.ts', 'demo', '--hours', `${HOURS}`, '--sessions', `${SESSIONS}`, ...options]
  const env = { ...process.env, LOCAL_DIR: localDir }
  return new Promise(resolve => {
    execFile(process.execPath, words, { env, timeout: 150_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    )
  })
}

describe.skipIf('missing' in browserFound)('npm run demo', () => {
  let stack: ConsoleStack
  let page: Page
  let links: DemoLinks
  let truth: Truth
  const nothing = { LOCAL_DIR: '' }

  beforeAll(async () => {
    if ('missing' in browserFound) return
    nothing.LOCAL_DIR = await mkdtemp(join(tmpdir(), 'penstock-demo-'))
    stack = await startConsoleStack(browserFound.path)
    const { code, stdout, stderr } = await runDemo(stack.localDir, '--json')
    expect(code, stderr).toBe(0)
    ;({ links, truth } = JSON.parse(stdout))
    // Which of them are one failure is decided later (docs/api/findings.md#one-failure).
    const areCounted = async () => isDeepStrictEqual(await countedOccurrences(), truth.occurrences)
    await until('each failure is counted once', areCounted, { deadlineMs: 90_000 })
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  }, 240_000)
  afterAll(async () => {
    await stack?.stop()
    await rm(nothing.LOCAL_DIR, { recursive: true, force: true })
  })

  const read = async (path: string, parameters: Readonly<Record<string, string>>): Promise<unknown> => {
    const { baseUrl, sessionToken } = stack.credentials
    const response = await fetch(`${baseUrl}${path}?${new URLSearchParams(parameters)}`, {
      headers: { authorization: `Bearer ${sessionToken}` },
    })
    expect(response.status).toBe(200)
    return response.json()
  }
  const countedOccurrences = async (): Promise<Record<string, number>> => {
    const { findings } = findingsPageSchema.parse(await read('/v3/findings', { limit: '100' }))
    const occurrences: Record<string, number> = {}
    for (const { serviceName, type, occurrenceCount } of findings) {
      const name = `${serviceName} ${type}`
      occurrences[name] = (occurrences[name] ?? 0) + occurrenceCount
    }
    return occurrences
  }
  const from = new Date(Date.now() - (HOURS + 1) * HOUR_MS).toISOString()

  it('states where nothing is sent to, and how to change that', async () => {
    const run = await runDemo(nothing.LOCAL_DIR)
    expect(run).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining('start it in another terminal') })
  })

  it('opens the finding with its source lines, and has sent all of its occurrences', async () => {
    await page.goto(links.finding)
    await page.getByRole('heading', { level: 1, name: 'TypeError' }).waitFor()
    await page.getByText('cents += line.quantity * line.price.cents').waitFor()
    expect(await page.locator('.frames .file').first().textContent()).toMatch(/money\.ts:\d+/)
    const occurrences = page.locator('.facts > div', { hasText: 'Occurrences' }).locator('dd')
    expect(await occurrences.textContent()).toBe(String(truth.occurrences['shop-web TypeError']))
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'demo-finding')
  })

  it('opens its trace and its session, whose recording shows the failure', async () => {
    await page.goto(links.trace)
    await page.getByRole('row', { name: /POST \/quote/ }).waitFor()
    await page.goto(links.session)
    await page.getByRole('region', { name: 'Player' }).waitFor()
    const seen = "document.querySelector('iframe')?.contentDocument?.querySelector('#cart')?.textContent ?? ''"
    await until('the picture shows the cart', async () => {
      const text = await stageOf(page)
        ?.evaluate<string>(seen)
        .catch(() => '')
      return text?.includes('Cup')
    })
    await takePictures(page, 'demo-session')
  })

  it('has findings, traces and log records of which none is missing or too many', async () => {
    expect(await countedOccurrences()).toEqual(truth.occurrences)

    let [traces, spans, cursor] = [0, 0, '']
    do {
      const given = { limit: '100', from, ...(cursor && { cursor }) }
      const found = tracesPageSchema.parse(await read('/v3/traces', given))
      traces += found.traces.length
      spans += found.traces.reduce((sum, { spanCount }) => sum + spanCount, 0)
      cursor = found.nextCursor ?? ''
    } while (cursor !== '')
    expect({ traces, spans }).toEqual({ traces: truth.traces, spans: totalOf(truth, 'spans') })

    const { counts } = logHistogramSchema.parse(await read('/v3/logs/histogram', { from }))
    const bySeverity = Object.entries(counts).map(([name, steps]) => [name, steps.reduce((a, b) => a + b, 0)])
    expect(Object.fromEntries(bySeverity.filter(([, sum]) => sum !== 0))).toEqual(truth.logs)
  })

  it('has the sessions with their users, and metrics that add up to what was measured', async () => {
    const { sessions } = sessionsPageSchema.parse(await read('/v3/sessions', { limit: '100' }))
    const users = sessions.map(({ id, identity }) => [id, identity?.identifier ?? null])
    expect(Object.fromEntries(users)).toEqual(truth.sessions)
    for (const [name, sum] of Object.entries(truth.sums)) {
      const given = { from, aggregation: 'sum' }
      const { series } = metricSeriesSchema.parse(await read(`/v3/metrics/${name}/series`, given))
      const total = series.flatMap(({ values }) => values).reduce<number>((all, value) => all + (value ?? 0), 0)
      expect([name, total]).toEqual([name, expect.closeTo(sum, 3)])
    }
  })

  it('adds another shop when it is run again', async () => {
    const { code, stdout } = await runDemo(stack.localDir)
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(links.finding) })
    const { sessions } = sessionsPageSchema.parse(await read('/v3/sessions', { limit: '100' }))
    expect(sessions).toHaveLength(2 * Object.keys(truth.sessions).length)
  })
})
