import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join, normalize } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { build } from 'esbuild'

/** URL and names with which an app reports its failure. */
export interface ReportSettings {
  readonly url: string
  readonly publicKey: string
  readonly service: string
  readonly version: string
}

/**
 * Source of the global `reportFailure(error, settings)`, which reports a failure as the exception of a span with the official
 * SDK.
 */
const TELEMETRY = `
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

globalThis.reportFailure = async (error, { url, publicKey, service, version }) => {
  const exporter = new OTLPTraceExporter({ url, headers: { 'x-service-public-key': publicKey } })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.version': version }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  })
  const span = provider.getTracer('shop').startSpan('place order')
  // Scripts that were built with the plugin have stored their debug ids, each under a stack that begins in the script.
  const ids = Object.entries(globalThis._penstockDebugIds ?? {}).map(([stack, id]) => [stack.match(/https?:.+?(?=:\\d+:\\d+)/)[0], id])
  if (ids.length === 0) span.recordException(error)
  else {
    span.addEvent('exception', {
      'exception.type': error.name,
      'exception.message': error.message,
      'exception.stacktrace': error.stack,
      'exception.debug_ids': JSON.stringify(Object.fromEntries(ids)),
    })
  }
  span.end()
  await provider.forceFlush()
  await provider.shutdown()
}
`

/** Source of the failing call, the same in a page and in Node. */
const FAIL = `
async function failAndReport(settings) {
  try {
    await globalThis.shop.placeOrder('pen')
  } catch (error) {
    await globalThis.reportFailure(error, settings)
    return error.stack
  }
  throw new Error('it has not failed')
}
`

/** Writes \`page.js\` for a browser and \`runner.mjs\` for Node into a directory. */
export async function writeReporters(directory: string): Promise<void> {
  const resolveDir = dirname(createRequire(import.meta.url).resolve('../../../package.json'))
  for (const [platform, outfile] of [
    ['browser', 'telemetry.js'],
    ['node', 'telemetry.cjs'],
  ] as const) {
    await build({
      stdin: { contents: TELEMETRY, resolveDir, loader: 'js' },
      outfile: join(directory, outfile),
      bundle: true,
      minify: true,
      platform,
      format: platform === 'browser' ? 'iife' : 'cjs',
      target: platform === 'browser' ? 'es2022' : 'node22',
      logLevel: 'error',
    })
  }
  const run = `${FAIL}
import { pathToFileURL } from 'node:url'
import './telemetry.cjs'
const [script, settings] = process.argv.slice(2)
await import(pathToFileURL(script).href)
console.log(await failAndReport(JSON.parse(settings)))
`
  await writeFile(join(directory, 'runner.mjs'), run)
}

/** Server of pages that fail on request. */
export interface FailingPages {
  /** Returns the URL of the page that loads this script of the directory. */
  pageOf(script: string): string
  stop(): Promise<void>
}

/** Serves a directory, and for each of its scripts a page that loads it and fails on request. */
export async function serveFailingPages(directory: string): Promise<FailingPages> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/page') {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(`<!doctype html><title>Shop</title>
<script src="/telemetry.js"></script>
<script>${FAIL}</script>
<script type="module" src="/${searchParams.get('script')}"></script>`)
      return
    }
    const file = join(directory, normalize(pathname))
    response.setHeader('content-type', 'text/javascript; charset=utf-8')
    pipeline(createReadStream(file), response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`
  return {
    pageOf: script => `${origin}/page?script=${encodeURIComponent(script)}`,
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
