import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  OTEL_SNIPPETS,
  RELEASE_SNIPPETS,
  SESSION_SNIPPETS,
  type Snippet,
} from '../../../console/onboarding/snippets.ts'
import { PERMISSIONS } from '../../../schemas/records/directory.ts'
import { runSnippet } from '../../support/clients/run-snippet.ts'
import { openPrintedLink, takePictures, violations } from '../../support/console/console-page.ts'
import { type ConsoleStack, startConsoleStack } from '../../support/console/signed-in-console.ts'
import { findBrowser } from '../../support/pages/browser.ts'
import { until } from '../../support/until.ts'

const browserFound = await findBrowser()
if ('missing' in browserFound) console.warn(`no test of empty lists: missing ${browserFound.missing}`)

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** From the answer of a client to the link in the page. */
const ARRIVAL_MS = 5_000
const snippetOf = (snippets: readonly Snippet[], id: string) => {
  const snippet = snippets.find(each => each.id === id)
  if (snippet === undefined) throw new Error(`there is no example ${id}`)
  return snippet
}

describe.skipIf('missing' in browserFound)('the console of a workspace to which nothing was sent', () => {
  let stack: ConsoleStack
  let page: Page
  const servers: Server[] = []

  beforeAll(async () => {
    if ('missing' in browserFound) return
    stack = await startConsoleStack(browserFound.path)
    page = await stack.openPage()
    await openPrintedLink(page, stack.start)
  })
  afterAll(async () => {
    for (const server of servers) server.close()
    await stack?.stop()
  })

  const access = () => ({ endpoint: stack.credentials.baseUrl, publicKey: stack.credentials.publicKey })
  const open = async (path: string, title: string) => {
    await page.goto(stack.urlOf(path))
    await page.getByRole('heading', { level: 2, name: title }).waitFor()
  }
  const shown = () => page.locator('pre.snippet').textContent()
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(stack.credentials.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${stack.credentials.sessionToken}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }

  /** Opens a page of another origin whose only script is an example. */
  async function openBundled(snippet: Snippet): Promise<Page> {
    const contents = snippet.text(access())
    const stdin = { contents, resolveDir: ROOT, loader: 'js' as const }
    const alias = { '@penstock/browser': join(ROOT, 'packages/browser/src/index.ts') }
    const options = { bundle: true, splitting: true, write: false, format: 'esm', outdir: '/', alias } as const
    const { outputFiles } = await build({ stdin, ...options, platform: 'browser' })
    const scripts = new Map(outputFiles.map(({ path, text }) => [path, text]))
    const server = createServer(({ url }, response) => {
      const script = scripts.get(url ?? '')
      response.setHeader('content-type', script === undefined ? 'text/html; charset=utf-8' : 'text/javascript')
      response.end(
        script ?? '<!doctype html><title>Shop</title><h1>Shop</h1><script type=module src=/stdin.js></script>',
      )
    })
    servers.push(server)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const shop = await stack.browser.context.newPage()
    await shop.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    return shop
  }

  it.each([
    ['findings', 'No findings yet', OTEL_SNIPPETS],
    ['findings?q=nothing', 'No findings yet', OTEL_SNIPPETS],
    ['traces', 'No traces yet', OTEL_SNIPPETS],
    ['logs', 'No log records yet', OTEL_SNIPPETS],
    ['metrics', 'No metrics yet', OTEL_SNIPPETS],
    ['sessions', 'No sessions yet', SESSION_SNIPPETS],
    ['releases', 'No releases yet', RELEASE_SNIPPETS],
  ])('shows in %s how to send, with endpoint and key', async (path, title, snippets) => {
    await open(path, title)
    await page.getByRole('status').filter({ hasText: 'Waiting for the first' }).waitFor()
    await page.getByText(access().endpoint, { exact: true }).waitFor()
    await page.getByText(access().publicKey, { exact: true }).waitFor()
    expect(await shown()).toBe(snippets[0]?.text(access()))
    expect(await violations(page)).toEqual([])
    await takePictures(page, `onboarding-${path.replace(/\W/g, '-')}`)
  })

  it('shows each example by the keyboard, and copies it', async () => {
    await stack.browser.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await open('traces', 'No traces yet')
    await page.getByRole('radio', { name: 'Node.js' }).focus()
    for (const snippet of OTEL_SNIPPETS.slice(1)) {
      await page.keyboard.press('ArrowRight')
      expect(await shown()).toBe(snippet.text(access()))
    }
    const copy = page.getByRole('button', { name: 'Copy example' })
    await copy.press('Enter')
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(OTEL_SNIPPETS.at(-1)?.text(access()))
    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("refused"))')
    await copy.press('Enter')
    await page.getByText('Not copied: this browser does not allow it').waitFor()
  })

  it('becomes a link to the trace when the example of Node.js has run', async () => {
    await open('traces', 'No traces yet')
    await page.getByText('Waiting for the first span').waitFor()
    // The registry has no package of this commit.
    const cwd = join(ROOT, 'packages/node')
    await promisify(execFile)(process.execPath, ['../pack.ts'], { cwd, timeout: 60_000 })
    await runSnippet(snippetOf(OTEL_SNIPPETS, 'node').text(access()), { npm: 'exit 0' })
    const link = page.getByRole('link', { name: 'A span has arrived: GET /cart of shop' })
    await link.waitFor({ timeout: ARRIVAL_MS })
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'onboarding-arrived')
    await link.press('Enter')
    await page.getByRole('heading', { level: 1, name: /GET \/cart/ }).waitFor()
  })

  it('states that nothing matches only where something was sent', async () => {
    await open('traces?name=absent', 'No trace matches')
    await open('findings?q=nothing', 'No finding matches')
    await open('findings', 'No findings in this time')
    await page.getByText('The time that was searched: Last 24 hours.').waitFor()
    await open('sessions?user=nobody', 'No sessions yet')
  })

  it('takes the example of a page, which is of another origin', async () => {
    await open('sessions', 'No sessions yet')
    const shop = await openBundled(snippetOf(SESSION_SNIPPETS, 'browser'))
    await page.bringToFront()
    await page.getByRole('link', { name: 'A session has arrived' }).click()
    await page.getByRole('heading', { level: 1, name: /Ada|user-17/ }).waitFor()
    await until('the recording is stored', async () => {
      const { sessions } = (await ask('GET', '/v3/sessions?hasReplay=true')) as { sessions: unknown[] }
      return sessions.length === 1
    })
    await until('the span is stored', async () => {
      const { traces } = (await ask('GET', '/v3/traces?service=shop-web')) as { traces: unknown[] }
      return traces.length === 1
    })
    await shop.close()
  })

  it('makes a surface with a key where there is none, and lets choose among several', async () => {
    const { surfaceId } = stack.credentials
    await ask('DELETE', `/v3/surfaces/${surfaceId}`)
    await open('logs', 'No log records yet')
    await page.getByRole('textbox', { name: 'Name of the surface' }).fill('Shop')
    expect(await violations(page)).toEqual([])
    await takePictures(page, 'onboarding-no-surface')
    await page.getByRole('button', { name: 'Create a surface with a key' }).click()
    const key = await page.getByText(/^pk_\w+$/).textContent()
    expect(await shown()).toContain(key)

    const { surface } = (await ask('POST', '/v3/surfaces', { name: 'App' })) as { surface: { id: string } }
    await open('logs', 'No log records yet')
    await page.getByRole('combobox', { name: 'Surface' }).selectOption(surface.id)
    await page.getByRole('button', { name: 'Create a public key' }).click()
    await page.getByText(/^pk_\w+$/).waitFor()
    expect(await shown()).not.toContain(key)
  })

  it('tells a member without the permission whom to ask', async () => {
    await ask('POST', '/v3/members', { userId: 'user_ben', name: 'Ben', permissions: [...PERMISSIONS] })
    const kept = PERMISSIONS.filter(permission => permission !== 'org:surfaces:read')
    await ask('PATCH', `/v3/members/${stack.credentials.userId}`, { permissions: kept })
    await open('logs', 'No log records yet')
    await page.getByText('You need the permission org:surfaces:read to see the key to send with.').waitFor()
    await page.getByText('These members have it: Ben.').waitFor()
    expect(await violations(page)).toEqual([])
  })
})
