import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { createServer, preview } from 'vite'
import { freePort } from '../../../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../../../deploy/local/processes/child-process.ts'

/** A running site with a proxy for its telemetry. */
export interface RecipeSite {
  readonly origin: string
  stop(): Promise<void>
}

/** A site of static files that gets a recipe. */
interface SiteOptions {
  /** The static files. */
  readonly files: string
  /** An empty directory. */
  readonly dir: string
  /** Text of the recipe. */
  readonly recipe: string
}

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' }

/** Starts nginx with a server that has the recipe. */
export async function startNginxSite(command: string, { files, dir, recipe }: SiteOptions): Promise<RecipeSite> {
  const port = await freePort()
  const types = Object.entries(TYPES).map(([ending, type]) => `${type} ${ending.slice(1)};`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${dir}/${name};`,
  )
  // As root, nginx would read the files as another user, for whom the directory of a test is closed.
  const configuration = `${process.getuid?.() === 0 ? 'user root;' : ''}
pid ${dir}/nginx.pid;
daemon off;
events {}
http {
  types { ${types.join(' ')} }
  access_log off;
  ${temporary.join(' ')}
  server {
    listen 127.0.0.1:${port};
    root ${files};
    ${recipe}
  }
}`
  await mkdir(dir, { recursive: true })
  await writeFile(join(dir, 'nginx.conf'), configuration)
  const log: string[] = []
  const args = ['-e', 'stderr', '-p', `${dir}/`, '-c', join(dir, 'nginx.conf')]
  const child = await startChild({ command, args, log: line => void log.push(line) })
  const origin = `http://localhost:${port}`
  await untilReady('nginx', child, () => answers(`http://127.0.0.1:${port}/`, [200]), {}).catch(error => {
    throw new Error(`nginx did not start:\n${log.slice(-20).join('\n')}`, { cause: error })
  })
  return { origin, stop: () => child.stop() }
}

/** Starts the development server or the preview server of Vite with the recipe as its configuration. */
export async function startViteSite(
  kind: 'development' | 'preview',
  { files, dir, recipe }: SiteOptions,
): Promise<RecipeSite> {
  await mkdir(dir, { recursive: true })
  const configFile = join(dir, 'vite.config.mjs')
  await writeFile(configFile, recipe)
  const listen = { host: '127.0.0.1', port: await freePort(), strictPort: true }
  const common = { root: files, configFile, cacheDir: join(dir, 'cache'), logLevel: 'error' as const }
  if (kind === 'preview') {
    const server = await preview({ ...common, build: { outDir: files }, preview: listen })
    return { origin: originOf(server.httpServer.address()), stop: () => server.close() }
  }
  const server = await createServer({ ...common, server: listen })
  await server.listen()
  return { origin: originOf(server.httpServer?.address()), stop: () => server.close() }
}

/** Starts a Worker with the recipe on its route, and another one that serves the files. */
export async function startWorkerSite({ files, recipe }: SiteOptions): Promise<RecipeSite> {
  const paths = (await readdir(files, { recursive: true })).filter(path => path.includes('.'))
  const pages: Record<string, readonly [text: string, type: string]> = {}
  for (const path of paths) {
    const address = path === 'index.html' ? '/' : `/${path}`
    pages[address] = [await readFile(join(files, path), 'utf8'), TYPES[extname(path)] ?? '']
  }
  const site = `const pages = ${JSON.stringify(pages)}
export default {
  fetch(request) {
    const [text, type] = pages[new URL(request.url).pathname] ?? []
    return text === undefined ? new Response('', { status: 404 }) : new Response(text, { headers: { 'content-type': type } })
  },
}`
  const { Log, LogLevel, Miniflare } = await import('miniflare')
  const common = { modules: true as const, compatibilityDate: '2026-07-01' }
  const port = await freePort()
  const miniflare = new Miniflare({
    host: '127.0.0.1',
    port,
    cf: false,
    telemetry: { enabled: false },
    log: new Log(LogLevel.ERROR),
    workers: [
      { ...common, name: 'site', script: site },
      { ...common, name: 'telemetry', script: recipe, routes: ['localhost/telemetry/*'] },
    ],
  })
  await miniflare.ready
  return { origin: `http://localhost:${port}`, stop: () => miniflare.dispose() }
}

function originOf(address: AddressInfo | string | null | undefined): string {
  return `http://localhost:${(address as AddressInfo).port}`
}
