import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Status } from '../../packages/browser/src/options.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import {
  type RecipeSite,
  startNginxSite,
  startViteSite,
  startWorkerSite,
} from '../support/pages/browser-sdk/recipe-sites.ts'
import { readRecipe, writeSdkSite } from '../support/pages/browser-sdk/recipes.ts'
import { type SdkStage, startSdkStage } from '../support/pages/browser-sdk/sdk-stage.ts'
import { findNginx } from '../support/proxy/start-nginx.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of the recipes of proxies: missing ${browserFound.missing}`)
const nginx = findNginx()
if ('fault' in nginx) console.warn(`the recipe for nginx is not tested: ${nginx.fault}`)

interface Site {
  readonly recipe: string
  readonly isMissing?: boolean
  start(options: Parameters<typeof startWorkerSite>[0]): Promise<RecipeSite>
}

/** The recipe for Next is tested by next.long.test.ts. */
const SITES: Readonly<Record<string, Site>> = {
  nginx: {
    recipe: 'nginx',
    isMissing: 'fault' in nginx,
    start: options => startNginxSite('command' in nginx ? nginx.command : '', options),
  },
  'the development server of Vite': {
    recipe: 'vite.config.js',
    start: options => startViteSite('development', options),
  },
  'the preview server of Vite': { recipe: 'vite.config.js', start: options => startViteSite('preview', options) },
  'a Worker of Cloudflare': { recipe: 'Cloudflare', start: startWorkerSite },
}

/** Logs and navigates when the page ends, before the package notices the end. */
const LAST_WORDS = `addEventListener('pagehide', () => {
  penstock.log('info', 'last words')
  history.pushState({}, '', '/last')
})`

/** Sends 4 MiB, which are no export. Returns the status. */
const LARGE = `(async () => {
  const headers = { 'content-type': 'application/json', 'x-service-public-key': settings.key }
  const answer = await fetch('/telemetry/v1/logs', { method: 'POST', headers, body: 'x'.repeat(4 * 1024 * 1024) })
  return answer.status
})()`

describe.skipIf('missing' in browserFound)('the recipe in the README', () => {
  let stage: SdkStage
  let browser: TestBrowser
  let root: string
  let files: string

  beforeAll(async () => {
    if ('missing' in browserFound) return
    root = await mkdtemp(join(tmpdir(), 'penstock-recipes-'))
    files = join(root, 'files')
    await mkdir(files)
    stage = await startSdkStage()
    await writeSdkSite(files, stage.stack.secrets.publicKey)
    browser = await startBrowser(browserFound.path)
  })
  afterAll(async () => {
    await browser?.stop()
    await stage?.stop()
    await rm(root, { recursive: true, force: true })
  })

  const status = (page: Page) => page.evaluate('penstock.status()') as Promise<Status>
  async function spansOf(session: string): Promise<readonly string[]> {
    const rows = await stage.rows<{ name: string }>(`SELECT name FROM spans WHERE session_id = '${session}'`)
    return rows.map(({ name }) => name)
  }

  for (const [name, { recipe, isMissing = false, start }] of Object.entries(SITES)) {
    it.skipIf(isMissing)(`for ${name} brings telemetry to the service, also of a page that was closed`, async () => {
      const text = await readRecipe(recipe, stage.stack)
      const site = await start({ files, dir: join(root, name.replaceAll(' ', '-')), recipe: text })
      try {
        const page = await browser.context.newPage()
        await page.addInitScript(LAST_WORDS)
        await page.goto(`${site.origin}/`)
        const session = (await page.evaluate('penstock.sessionId')) as string
        await page.evaluate("fetch('/settings.js').then(answer => answer.text())")
        await until('the spans are stored', async () => {
          const names = await spansOf(session)
          return names.includes('page load /') && names.includes('GET')
        })
        await page.evaluate('penstock.flush()')
        const found = await until('the receipts are read', async () => {
          const shown = await status(page)
          return shown.waiting === 0 && shown.stored === shown.sent ? shown : undefined
        })
        expect(found).toMatchObject({ session, lost: 0 })

        // The snapshot of a large page has more than the megabyte that proxies like to refuse.
        expect(await page.evaluate(LARGE)).toBe(400)

        await page.close()
        await until('the last span is stored', async () => (await spansOf(session)).includes('navigation /last'))
        await until('the last record is stored', async () => {
          const logs = await stage.rows<{ body: string }>(`SELECT body FROM logs WHERE session_id = '${session}'`)
          return logs.some(({ body }) => body === 'last words')
        })
      } finally {
        await site.stop()
      }
    })
  }
})
