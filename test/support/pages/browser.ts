import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type BrowserContext, chromium } from 'playwright-core'
import { MIB } from '../../../schemas/units.ts'

const run = promisify(execFile)
const DEBIAN_CHROMIUM = '/usr/bin/chromium'
const CHROME = '/usr/bin/google-chrome'
const INSTALL_DEADLINE_MS = 300_000
/** Flags that prevent requests other than those of the tested pages, such as updates, sync and lists of the vendor. */
const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Path of a browser, or the reason why there is none. */
type FoundBrowser = { readonly path: string } | { readonly missing: string }

/**
 * Finds Chromium, or Chrome as the machines of hosted CI have it, or the browser that `CHROMIUM_PATH` names. Installs the missing
 * package of Debian if that is allowed. Throws in CI if there is none: tests that are left out there would never be missed.
 */
export async function findBrowser(): Promise<FoundBrowser> {
  const found = await look()
  if ('missing' in found && process.env.CI) throw new Error(`a browser is required in CI: ${found.missing} is missing`)
  return found
}

async function look(): Promise<FoundBrowser> {
  const named = process.env.CHROMIUM_PATH
  if (named) return existsSync(named) ? { path: named } : { missing: `${named}, which CHROMIUM_PATH names` }
  const path = [DEBIAN_CHROMIUM, CHROME].find(existsSync)
  if (path !== undefined) return { path }
  const missing = DEBIAN_CHROMIUM
  if (!existsSync('/usr/bin/apt-get')) return { missing: `${missing}; CHROMIUM_PATH may name another` }
  if (process.getuid?.() !== 0) return { missing: `${missing}: run \`apt-get install chromium\` as root` }
  process.stdout.write('installing chromium (apt-get)\n')
  try {
    await installOnce()
  } catch (error) {
    return { missing: `${missing}, which could not be installed: ${error instanceof Error ? error.message : error}` }
  }
  return existsSync(missing)
    ? { path: missing }
    : { missing: `${missing}, which the package chromium does not contain` }
}

/** Installs the package; a second test file that needs it at the same time waits for the first one. */
async function installOnce(): Promise<void> {
  const options = '-qq -o DPkg::Lock::Timeout=120'
  const install = `apt-get ${options} update && apt-get ${options} install -y --no-install-recommends chromium`
  await run(
    'flock',
    [join(tmpdir(), 'penstock-chromium.lock'), 'sh', '-c', `test -e ${DEBIAN_CHROMIUM} || { ${install}; }`],
    {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      timeout: INSTALL_DEADLINE_MS,
      maxBuffer: 16 * MIB,
    },
  )
}

/** Running browser. */
export interface TestBrowser {
  /** Context with an empty profile, whose windows share storage. */
  readonly context: BrowserContext
  stop(): Promise<void>
}

/** Starts a headless browser with an empty profile, and with these flags besides its own. */
export async function startBrowser(path: string, flags: readonly string[] = []): Promise<TestBrowser> {
  const profile = await mkdtemp(join(tmpdir(), 'penstock-browser-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: path,
    headless: true,
    chromiumSandbox: false,
    args: [...FLAGS, ...flags],
    timeout: 60_000,
  })
  context.setDefaultTimeout(30_000)
  return {
    context,
    async stop() {
      await context.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
