import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { LocalCredentials } from '../../../deploy/local/start.ts'
import { startBrowser, type TestBrowser } from '../pages/browser.ts'
import { freePorts, type LocalStart, runLocalStart } from '../services/local-start.ts'

/** A running installation, and a browser for its console. */
export interface ConsoleStack {
  readonly start: LocalStart
  readonly credentials: LocalCredentials
  /** Its LOCAL_DIR. */
  readonly localDir: string
  readonly browser: TestBrowser
  /** Requests and errors of all pages so far. */
  readonly requests: readonly string[]
  readonly complaints: readonly string[]
  /** Opens a tab of 1280 × 900 pixels. */
  openPage(): Promise<Page>
  /** Returns the address of a path of the console. */
  urlOf(path: string): string
  stop(): Promise<void>
}

/** An idle machine takes eight seconds. */
const START_DEADLINE_MS = 150_000

/** Runs `npm start` with data of its own, and a browser with these flags. No one is signed in yet. */
export async function startConsoleStack(browserPath: string, flags: readonly string[] = []): Promise<ConsoleStack> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-console-'))
  const start = runLocalStart(dir, await freePorts())
  const credentials = await start.untilReady(START_DEADLINE_MS).catch(async error => {
    start.signal('SIGTERM')
    await start.exited
    throw error
  })
  const browser = await startBrowser(browserPath, flags)
  browser.context.setDefaultTimeout(15_000)
  const requests: string[] = []
  const complaints: string[] = []
  return {
    start,
    credentials,
    localDir: dir,
    browser,
    requests,
    complaints,
    async openPage() {
      const page = await browser.context.newPage()
      await page.setViewportSize({ width: 1280, height: 900 })
      page.on('request', request => requests.push(request.url()))
      page.on('pageerror', error => complaints.push(String(error)))
      page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
      return page
    },
    urlOf: path => `${credentials.baseUrl}/console/${path}`,
    async stop() {
      await browser.stop()
      start.signal('SIGTERM')
      await start.exited
      await rm(dir, { recursive: true, force: true })
    },
  }
}
