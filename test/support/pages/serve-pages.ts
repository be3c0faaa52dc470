import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { build } from 'esbuild'

const PAGES = new URL('recorded-page/', import.meta.url)
const RRWEB = new URL('../../../node_modules/rrweb/dist/', import.meta.url)
const FILES: ReadonlyMap<string, URL> = new Map([
  ...[
    'index.html',
    'checkout.html',
    'ended.html',
    'replay.html',
    'page.css',
    'page.js',
    'recorder.js',
    'replay.js',
  ].map(name => [`/${name}`, new URL(name, PAGES)] as const),
  ['/rrweb.js', new URL('rrweb.umd.min.cjs', RRWEB)],
  ['/rrweb.css', new URL('style.min.css', RRWEB)],
])
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** Settings of the recorded pages, as `settings` in their global scope. */
interface PageSettings {
  readonly ingestUrl: string
  readonly publicKey: string
  readonly sessionId: string
  readonly deviceId: string
  readonly visitorId: string
}

/** Server of the recorded pages. */
export interface PageServer {
  /** A host name other than that of the services, so that a browser sees another site and not only another origin. */
  readonly origin: string
  stop(): Promise<void>
}

/** Returns the installed `@rrweb/packer` as a script of a page. Its own builds for pages need a loader of modules. */
async function packerScript(): Promise<string> {
  const options = { bundle: true, format: 'iife', globalName: 'rrwebPacker', write: false } as const
  const { outputFiles } = await build({
    ...options,
    stdin: { contents: "export * from '@rrweb/packer'", resolveDir: '.' },
  })
  return outputFiles.map(({ text }) => text).join('')
}

/** Serves the pages of test/support/pages/recorded-page, and the installed rrweb. */
export async function servePages(settings: PageSettings): Promise<PageServer> {
  const written: Readonly<Record<string, string>> = {
    '/settings.js': `const settings = ${JSON.stringify(settings)}\n`,
    '/packer.js': await packerScript(),
  }
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    response.setHeader('content-type', TYPES[extname(pathname)] ?? 'text/plain')
    if (written[pathname] !== undefined) {
      response.end(written[pathname])
      return
    }
    const file = FILES.get(pathname)
    if (!file) {
      response.writeHead(404).end()
      return
    }
    pipeline(createReadStream(file), response).catch(error => response.destroy(error))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
