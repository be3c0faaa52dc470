import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createConsoleRoutes } from '../../../api/console/console-routes.ts'
import { createHttpServer, type HttpServer } from '../../../shared/http/server/server.ts'
import { createAuthority } from '../../support/proxy/certificates.ts'
import { findNginx, type RunningProxy, startNginx } from '../../support/proxy/start-nginx.ts'
import { putWorkspace, signToken, startApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const found = findNginx()
if ('fault' in found) console.warn(`the tests of nginx are skipped: ${found.fault}`)

/** Headers of a connection, and those that the proxy adds or hides. */
const OF_THE_PROXY = [
  'connection',
  'keep-alive',
  'date',
  'server',
  'uwebsockets',
  'strict-transport-security',
  'x-request-id',
]
const LARGE_SCRIPT = 'console.log(1)\n'.repeat(20_000)

describe.skipIf('fault' in found)('what browsers, agents and dashboards read through nginx', () => {
  let dir: string
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  let api: Awaited<ReturnType<typeof startApi>>
  let consoleServer: HttpServer
  let consoleUrl: string
  /** In front of the API, and of a process that has the routes of the console with files of this test. */
  let apiProxy: RunningProxy
  let consoleProxy: RunningProxy
  const trustedBefore = getCACertificates('default')

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-readers-'))
    const authority = createAuthority(join(dir, 'ca'))
    setDefaultCACertificates([...trustedBefore, authority.pem])
    const services = sharedServices()
    database = await createTestDatabase(services.clickhouseUrl, `proxy_${process.pid}`)
    await putWorkspace(services.redisUrl, { id: 'ws_proxy', slug: 'proxied', userId: 'user_proxied' })
    api = await startApi(services, database.name)
    await writeConsole(join(dir, 'console'))
    const settings = { CONSOLE_ISSUER: 'https://id.example/', CONSOLE_CLIENT_ID: 'console', CONSOLE_SCOPE: 'openid' }
    const logger = pino({ level: 'silent' })
    const routes = createConsoleRoutes(settings, logger, join(dir, 'console'))
    consoleServer = createHttpServer({ routes, logger, heldBodyLimitBytes: 1 })
    const port = await consoleServer.listen('127.0.0.1', 0)
    consoleUrl = `http://127.0.0.1:${port}`
    const command = 'command' in found ? found.command : ''
    // Nothing listens there: a request that reached it would be 503.
    const common = { edges: ['127.0.0.1:9'], certificate: authority.issue('localhost') }
    apiProxy = await startNginx(command, { ...common, dir: join(dir, 'api'), apis: [new URL(api.baseUrl).host] })
    consoleProxy = await startNginx(command, { ...common, dir: join(dir, 'nginx'), apis: [new URL(consoleUrl).host] })
  })
  afterAll(async () => {
    setDefaultCACertificates(trustedBefore)
    await apiProxy?.stop()
    await consoleProxy?.stop()
    await consoleServer?.close(1_000)
    await api?.stop()
    await database?.drop()
    await rm(dir, { recursive: true, force: true })
  })

  it.each([
    ['/console', {}, 308],
    ['/console/', {}, 200],
    ['/console/traces/a%2Fb?span=c', { 'accept-encoding': 'gzip' }, 200],
    ['/console/player', {}, 200],
    ['/console/assets/main-abc.js', {}, 200],
    ['/console/assets/main-abc.js', { 'accept-encoding': 'br, gzip' }, 200],
    ['/console/assets/stage-abc.js', {}, 200],
    ['/console/assets/absent.js', {}, 404],
  ])(
    'passes %s of the console with %j on as it is, with its policy and what caches may keep',
    async (path, headers, status) => {
      const ask = (url: string) =>
        fetch(url + path, { headers: { 'accept-encoding': 'identity', ...headers }, redirect: 'manual' })
      const [direct, proxied] = [await ask(consoleUrl), await ask(consoleProxy.baseUrl)]
      expect([direct.status, proxied.status]).toEqual([status, status])
      expect(headersOf(proxied)).toEqual(headersOf(direct))
      expect(await proxied.text()).toBe(await direct.text())
      expect(proxied.headers.get('strict-transport-security')).toMatch(/^max-age=/)
    },
  )

  it('lets browsers revalidate the document, and keep files whose names change', async () => {
    const document = await fetch(`${consoleProxy.baseUrl}/console/`)
    expect(document.headers.get('cache-control')).toBe('no-cache')
    expect(document.headers.get('content-security-policy')).toContain("script-src 'self'")
    const etag = document.headers.get('etag') ?? ''
    const again = await fetch(`${consoleProxy.baseUrl}/console/findings`, { headers: { 'if-none-match': etag } })
    expect([again.status, again.headers.get('content-security-policy')]).toEqual([
      304,
      document.headers.get('content-security-policy'),
    ])
    const asset = await fetch(`${consoleProxy.baseUrl}/console/assets/main-abc.js`)
    expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  })

  it('passes messages of agents and queries of Prometheus on, which no cache may keep', async () => {
    const authorization = `Bearer ${await signToken({ org: 'proxied', sub: 'user_proxied' })}`
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const prometheus = '/prometheus/api/v1'
    const requests: readonly [string, RequestInit, unknown][] = [
      ['/mcp', { method: 'POST', headers: json, body: ping }, { jsonrpc: '2.0', id: 1, result: {} }],
      [`${prometheus}/query`, { method: 'POST', headers: form, body: 'query=1%2B1&time=60' }, { status: 'success' }],
      [`${prometheus}/query?query=1%2B1&time=60`, {}, { status: 'success' }],
      [`${prometheus}/labels`, { method: 'POST', headers: form, body: '' }, { status: 'success' }],
    ]
    for (const [path, init, body] of requests) {
      const ask = (headers: Record<string, string>) =>
        fetch(apiProxy.baseUrl + path, {
          ...init,
          headers: { ...(init.headers as Record<string, string>), ...headers },
        })
      const answer = await ask({ authorization })
      expect(answer.status, path).toBe(200)
      expect(await answer.json()).toMatchObject(body as object)
      expect(answer.headers.get('cache-control'), path).toBe('no-store')
      const refused = await ask({})
      expect([refused.status, refused.headers.get('cache-control')], path).toEqual([401, 'no-store'])
      expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer /)
    }
  })
})

function headersOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !OF_THE_PROXY.includes(name)))
}

async function writeConsole(directory: string): Promise<void> {
  await mkdir(join(directory, 'assets'), { recursive: true })
  await writeFile(join(directory, 'index.html'), '<!doctype html><meta name="penstock-sign-in" content="%SIGN_IN%">')
  await writeFile(join(directory, 'player.html'), '<!doctype html><title>Recording</title>')
  for (const name of ['main-abc.js', 'stage-abc.js']) {
    await writeFile(join(directory, 'assets', name), LARGE_SCRIPT)
    await writeFile(join(directory, 'assets', `${name}.gz`), gzipSync(LARGE_SCRIPT))
  }
}
