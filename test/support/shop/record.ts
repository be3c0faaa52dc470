import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import type { Recorded, RecordedFailure, RecordedRelease } from '../../../cli/demo/recorded.ts'
import { findBrowser, startBrowser } from '../pages/browser.ts'
import { textOf } from '../pages/browser-sdk/serve-sdk-pages.ts'

/**
 * Writes cli/demo/recorded.json.gz (`npm run generate:shop`): builds both releases of the shop with esbuild, visits it with
 * Chromium as a customer whose checkout fails, and keeps the recording of @penstock/browser, the source maps and the exceptions.
 */
const PAGE = new URL('page/', import.meta.url)
const OUTPUT = new URL('../../../cli/demo/recorded.json.gz', import.meta.url)
const ORIGIN = 'https://shop.example'
/** The event of rrweb with which a recording begins. */
const META = 4

/** The answer of the API of the shop. It has no price for the cup, which is why the checkout fails. */
const QUOTE = [
  { sku: 'K-1', name: 'Kettle', quantity: 1, price: { cents: 4900, currency: 'EUR' } },
  { sku: 'T-2', name: 'Green tea', quantity: 1, price: { cents: 1250, currency: 'EUR' } },
  { sku: 'C-4', name: 'Cup', quantity: 1 },
]

interface Build extends RecordedRelease {
  readonly code: string
}

async function buildRelease(version: string, entry: string): Promise<Build> {
  const { outputFiles } = await build({
    entryPoints: { app: entry },
    absWorkingDir: PAGE.pathname,
    outdir: 'dist/assets',
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    sourcemap: 'external',
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  const code = outputFiles.find(({ path }) => path.endsWith('.js'))
  const map = outputFiles.find(({ path }) => path.endsWith('.map'))
  if (!code || !map) throw new Error('esbuild has written no script or no map')
  return { version, script: code.path.slice(code.path.indexOf('/assets/')), code: code.text, map: map.text }
}

/** Bundles the browser package as an application does: the recorder is a script of its own. */
async function buildRecorder(): Promise<readonly [path: string, script: readonly [type: string, body: string]][]> {
  const { outputFiles } = await build({
    entryPoints: ['src/recorder.ts'],
    absWorkingDir: PAGE.pathname,
    outdir: '/',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  return outputFiles.map(({ path, text }) => [path, ['text/javascript', text]])
}

async function serveShop({ script, code }: Build) {
  const html = readFileSync(new URL('index.html', PAGE), 'utf8').replace('/app.js', script)
  const files: Readonly<Record<string, readonly [type: string, body: string]>> = {
    '/': ['text/html; charset=utf-8', html],
    ...Object.fromEntries(await buildRecorder()),
    [script]: ['text/javascript', code],
    '/api/quote': ['application/json', JSON.stringify(QUOTE)],
  }
  const events: RecordedEvents[number][] = []
  const server = createServer(async (request, response) => {
    if (request.url?.startsWith('/telemetry/')) {
      const body = await bodyOf(request)
      if (request.url.startsWith('/telemetry/v3/replay/')) events.push(...eventsOf(body))
      response.end('{}')
      return
    }
    const [type, body] = files[request.url ?? ''] ?? []
    if (type === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': type }).end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`
  return { origin, events, close: () => server.close() }
}

type RecordedEvents = Recorded['events']

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Returns the events of a chunk. */
function eventsOf(body: Buffer): RecordedEvents {
  return textOf(body)
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}

type Failed = RecordedFailure & { readonly at: number }
const failureOf = (page: Page) => page.evaluate('globalThis.failure') as Promise<Failed>

/** Fills a cart, reads on, types name and card, and pays. A person takes about half a minute. */
async function failCheckout(page: Page): Promise<void> {
  const pause = (ms: number) => page.waitForTimeout(ms)
  const click = async (selector: string) => {
    const box = await page.locator(selector).boundingBox()
    if (box === null) throw new Error(`the page has no ${selector}`)
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 12 })
    await pause(250)
    await page.mouse.down()
    await page.mouse.up()
    await pause(800)
  }
  await pause(1_500)
  await click('text=Add Kettle')
  await click('text=Add Green tea')
  await page.mouse.wheel(0, 260)
  await pause(1_400)
  await page.mouse.wheel(0, -260)
  await pause(900)
  await click('text=Add Cup')
  await click('#checkout [name=name]')
  await page.keyboard.type('Ada Lindqvist', { delay: 110 })
  await click('#checkout [name=card]')
  await page.keyboard.type('4242424242424242', { delay: 90 })
  await click('#checkout [name=code]')
  await page.keyboard.type('424', { delay: 160 })
  await pause(1_200)
  await click('#pay')
  await page.getByText('Something went wrong').waitFor()
  await pause(1_800)
  await page.mouse.move(320, 300, { steps: 20 })
  await pause(1_500)
  await click('header')
  await pause(4_000)
}

async function failCoupon(page: Page): Promise<void> {
  await page.fill('#coupon input', 'TEA-10%')
  await page.click('#coupon button')
  await page.getByText('This coupon could not be read').waitFor()
}

const found = await findBrowser()
if ('missing' in found) throw new Error(`missing ${found.missing}`)
const browser = await startBrowser(found.path)
const builds = [
  await buildRelease('2.3.0', 'src/release-without-sale.ts'),
  await buildRelease('2.4.0', 'src/release-with-sale.ts'),
]
const coupon: Record<string, RecordedFailure> = {}
let visit: { failed: Failed; events: Recorded['events'] } | undefined
for (const release of builds) {
  const shop = await serveShop(release)
  const inShop = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll(shop.origin, ORIGIN))
  const page = await browser.context.newPage()
  await page.setViewportSize({ width: 1_100, height: 720 })
  await page.goto(shop.origin)
  await failCoupon(page)
  const { at: _, ...unreadable } = inShop(await failureOf(page))
  coupon[release.version] = unreadable
  if (release.version === '2.4.0') {
    await page.goto(shop.origin)
    await failCheckout(page)
    await page.evaluate('penstock.flush()')
    const own = shop.events.slice(shop.events.findLastIndex(({ type }) => type === META))
    visit = {
      failed: inShop(await failureOf(page)),
      events: inShop(own).toSorted((a, b) => a.timestamp - b.timestamp),
    }
  }
  await page.close()
  shop.close()
}
await browser.stop()
if (visit === undefined) throw new Error('no visit was recorded')

const startMs = visit.events[0]?.timestamp ?? 0
const { at, ...failed } = visit.failed
const recorded: Recorded = {
  releases: builds.map(({ version, script, map }) => ({ version, script, map })),
  checkout: failed,
  checkoutMs: at - startMs,
  coupon,
  events: visit.events.map(event => ({ ...event, timestamp: event.timestamp - startMs })),
}
const bytes = gzipSync(JSON.stringify(recorded), { level: 9 })
writeFileSync(OUTPUT, bytes)
console.info(`${recorded.events.length} events, ${bytes.length} bytes\n${failed.stack}\n${coupon['2.3.0']?.stack}`)
