import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import puppeteer, { type Browser } from 'puppeteer-core'
import { findCommand } from '../debian-package.ts'

/** A running Firefox whose profile outlives it. */
interface TestFirefox {
  readonly browser: Browser
  /** Ends Firefox as a crash does, and starts it again with the same profile. */
  crash(): Promise<void>
  stop(): Promise<void>
}

/** Starts the Firefox of Debian with an empty profile, by WebDriver BiDi. Returns the reason if it cannot be had or driven. */
export async function startFirefox(): Promise<TestFirefox | { readonly missing: string }> {
  const found = findCommand('firefox-esr', 'usr/lib/firefox-esr/firefox-esr')
  if ('fault' in found) return { missing: found.fault }
  const executablePath = found.command.includes('/') ? found.command : `/usr/bin/${found.command}`
  const profile = await mkdtemp(join(tmpdir(), 'penstock-firefox-'))
  const launch = () =>
    puppeteer.launch({ browser: 'firefox', executablePath, headless: true, userDataDir: profile, timeout: 60_000 })
  try {
    let browser = await launch()
    return {
      get browser() {
        return browser
      },
      async crash() {
        const ended = new Promise(resolve => browser.process()?.once('exit', resolve))
        browser.process()?.kill('SIGKILL')
        await ended
        // It would ask whether to restore its pages.
        for (const lock of ['lock', '.parentlock']) await rm(join(profile, lock), { force: true })
        browser = await launch()
      },
      async stop() {
        await browser.close()
        await rm(profile, { recursive: true, force: true, maxRetries: 5 })
      },
    }
  } catch (error) {
    return { missing: `Firefox could not be started: ${error instanceof Error ? error.message : error}` }
  }
}
