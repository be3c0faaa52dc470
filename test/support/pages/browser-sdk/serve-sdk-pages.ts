import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'
import { fetch } from 'undici'

/** How the proxy of the pages treats their telemetry. */
export type Weather = 'fine' | 'unavailable' | 'full' | 'cut' | 'answers lost'

/** Pages with the browser package, and a proxy to the service on their own origin. */
export interface SdkPages {
  readonly origin: string
  /** Scripts by path, and what is imported when. */
  readonly scripts: ReadonlyMap<string, Uint8Array>
  readonly metafile: Metafile
  weather: Weather
  /** Requests for telemetry, in the order of their arrival. */
  readonly telemetry: { readonly path: string; readonly text: string }[]
  /** `traceparent` of requests to `/api/…`. */
  readonly traceparents: string[]
  stop(): Promise<void>
}

export interface SdkPagesOptions {
  readonly ingestUrl: string
  readonly apiUrl: string
  readonly key: string
  /** Options of `init` besides the three that everybody gives. */
  readonly options?: object
  /** Elements of the page. */
  readonly body?: string
  /** Content security policy of the page. */
  readonly policy?: string
}

/** A policy that allows the scripts of the origin alone: no inline script, no worker, no `eval`. */
const STRICT = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; worker-src 'none'"

/** Serves pages that have the browser package bundled as an application has it, with its recorder as a script of its own. */
export async function serveSdkPages(options: SdkPagesOptions): Promise<SdkPages> {
  const { scripts, metafile } = await bundleApp()
  const pages = { scripts, metafile, weather: 'fine' as Weather, telemetry: [], traceparents: [] } as Omit<
    SdkPages,
    'origin' | 'stop'
  >
  const server = createServer((request, response) => {
    void serve(options, pages, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return Object.assign(pages, {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  })
}

/** Bundles app.ts. Returns its scripts by path. */
export async function bundleApp() {
  const { outputFiles, metafile } = await build({
    entryPoints: [new URL('app.ts', import.meta.url).pathname],
    absWorkingDir: dirname(createRequire(import.meta.url).resolve('../../../../package.json')),
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    outdir: '/scripts',
    write: false,
    metafile: true,
    logLevel: 'error',
  })
  const scripts = new Map(outputFiles.map(({ path, contents }) => [path, contents]))
  return { scripts, metafile }
}

async function serve(
  { ingestUrl, apiUrl, key, options, body, policy = STRICT }: SdkPagesOptions,
  pages: Omit<SdkPages, 'origin' | 'stop'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, search } = new URL(request.url ?? '/', 'http://localhost')
  if (pathname.startsWith('/telemetry/')) {
    const target = pathname.slice('/telemetry'.length) + search
    return forward(pages, target.startsWith('/v3/receipts') ? apiUrl : ingestUrl, target, request, response)
  }
  const script = pages.scripts.get(pathname)
  if (script !== undefined) {
    response.setHeader('content-type', 'text/javascript; charset=utf-8')
    response.end(script)
  } else if (pathname === '/settings.js') {
    response.setHeader('content-type', 'text/javascript; charset=utf-8')
    response.end(`globalThis.settings = ${JSON.stringify({ key, options })}`)
  } else if (pathname.startsWith('/api/')) {
    pages.traceparents.push(String(request.headers.traceparent ?? ''))
    response.statusCode = pathname === '/api/broken' ? 500 : 200
    response.end('{}')
  } else {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.setHeader('content-security-policy', policy)
    response.end(`<!doctype html><title>Shop</title><script src="/settings.js"></script>
<script type="module" src="/scripts/app.js"></script>${body ?? '<h1>Shop</h1><button id="buy">Buy</button>'}`)
  }
}

/** Passes a request on to the service, or does what the weather wants. */
async function forward(
  pages: Omit<SdkPages, 'origin' | 'stop'>,
  to: string,
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const isSent = request.method === 'POST'
  if (isSent) pages.telemetry.push({ path: target, text: textOf(body) })
  if (pages.weather === 'cut') {
    response.destroy()
    return
  }
  if (pages.weather === 'unavailable' || pages.weather === 'full') {
    response.writeHead(pages.weather === 'full' ? 429 : 503, { 'retry-after': '1' }).end()
    return
  }
  const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...headers } = request.headers
  const answer = await fetch(to + target, {
    method: request.method ?? 'GET',
    headers: headers as Record<string, string>,
    ...(isSent && { body }),
  })
  const text = await answer.text()
  if (pages.weather === 'answers lost') {
    response.destroy()
    return
  }
  const receipt = answer.headers.get('x-receipt-id')
  response.writeHead(answer.status, {
    'content-type': answer.headers.get('content-type') ?? 'application/json',
    ...(receipt !== null && { 'x-receipt-id': receipt }),
  })
  response.end(text)
}

/** Returns the text of a body, compressed or not. */
export function textOf(body: Buffer): string {
  return (body[0] === 0x1f ? gunzipSync(body) : body).toString()
}
