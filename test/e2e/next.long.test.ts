import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Status } from '../../packages/browser/src/options.ts'
import { framesOf } from '../support/bundlers/frames-of.ts'
import { type NextApp, writeNextApp } from '../support/bundlers/next-app.ts'
import { FAILING_LINE } from '../support/bundlers/write-app.ts'
import { findBrowser, startBrowser, type TestBrowser } from '../support/pages/browser.ts'
import { readRecipe } from '../support/pages/browser-sdk/recipes.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of Next in a browser: missing ${browserFound.missing}`)

let folder: string
let stack: Stack
let browser: TestBrowser | undefined
let app: NextApp | { readonly missing: string }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-next-'))
  stack = await startStack()
  if (!('missing' in browserFound)) browser = await startBrowser(browserFound.path)
  const configuration = await readRecipe('next.config.mjs', stack)
  app = await writeNextApp({ folder, configuration, url: stack.ingestUrl, ...stack.secrets })
  if ('missing' in app) console.warn(`no test of Next: ${app.missing}`)
}, 300_000)

afterAll(async () => {
  await browser?.stop()
  await stack?.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

describe.each(['webpack', 'turbopack'] as const)('an application of Next that %s bundles', bundler => {
  it('has its maps in one release only, those of the server too', async context => {
    if ('missing' in app) return context.skip(app.missing)
    const { directory, reports } = await app.build(bundler)
    expect(reports).toHaveLength(1)
    const [report] = reports
    expect(report?.result).toBe('ok')
    // Turbopack writes a map of a script that it has copied, which belongs to no bundle. It is removed too.
    expect(report?.removedCount).toBeGreaterThanOrEqual(report?.fileCount ?? 0)
    const urls = report?.files.map(({ chunkUrl }) => chunkUrl) ?? []
    expect(urls).toContainEqual(expect.stringMatching(/^~\/_next\/static\/.+\.js$/))
    expect(urls).toContainEqual(expect.stringMatching(/^~\/server\/.+\.js$/))
    for (const output of ['static', 'server']) {
      const files = await readdir(join(directory, output), { recursive: true })
      expect(files.filter(file => /\.js\.map$/.test(file))).toEqual([])
    }
  }, 180_000)

  it.skipIf('missing' in browserFound)(
    'sends by its rewrites, and shows where its source has failed',
    async context => {
      if ('missing' in app) return context.skip(app.missing)
      const site = await app.start(bundler)
      try {
        const page = await (browser as TestBrowser).context.newPage()
        await page.goto(site.origin)
        await page.waitForFunction('globalThis.penstock !== undefined')
        await page.locator('button').click()
        const frame = await until('the frame is resolved', async () => {
          const frames = await framesOf(stack, bundler)
          return frames?.[0]?.resolved ? frames[0] : undefined
        })
        expect(frame).toMatchObject({
          function: 'lookUp',
          line: FAILING_LINE,
          file: expect.stringMatching(/app\/pricing\.js$/),
        })
        await until('the receipts are read by the rewrites', async () => {
          const { sent, stored, waiting } = (await page.evaluate('penstock.status()')) as Status
          return sent > 1 && waiting === 0 && stored === sent
        })
        await page.close()
      } finally {
        await site.stop()
      }
    },
  )
})
