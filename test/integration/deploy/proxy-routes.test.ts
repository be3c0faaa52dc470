import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiRoutes } from '../../../api/routes.ts'
import { createIngestRoutes } from '../../../ingest/routes.ts'
import { allOperations } from '../../../schemas/http/all-operations.ts'
import { createAuthority } from '../../support/proxy/certificates.ts'
import { chooseBackend, type HttpRoute } from '../../support/proxy/http-route.ts'
import { findNginx, type RunningProxy, startNginx } from '../../support/proxy/start-nginx.ts'
import { until } from '../../support/until.ts'

/** The dependencies that the tables of routes read before a request. */
const idle = { sinks: {}, counterOf: () => undefined, identityProviders: [], queries: {} } as never

const routesOf = {
  edge: createIngestRoutes(idle).map(({ method, path }) => `${method} ${path}`),
  api: createApiRoutes(idle).map(({ method, path }) => `${method} ${path}`),
}
const operations = allOperations({ identityProviders: ['Auth0'] }).map(({ method, path }) => ({
  method,
  path,
  name: `${method} ${path}`,
  servedBy: (['edge', 'api'] as const).filter(name => routesOf[name].includes(`${method} ${path}`)),
  // Both serve the document. It comes from the API, where it can be read while the edges are busy.
  ...(path === '/openapi.json' && { servedBy: ['api'] }),
  target: path.replaceAll(/:\w+/g, 'any-id'),
}))

it('every operation of the document is served by one process', () => {
  expect(operations.filter(({ servedBy }) => servedBy.length !== 1)).toEqual([])
  expect(operations).toHaveLength(routesOf.edge.length + routesOf.api.length + 1)
})

describe('the HTTPRoute', () => {
  let route: HttpRoute
  beforeAll(async () => {
    route = await readRoute()
  })

  it.each(operations)('sends $name to the process that serves it', ({ method, target, servedBy }) => {
    expect(chooseBackend(route, method, target)).toEqual(servedBy.map(name => `penstock-${name}`))
  })
  it.each([
    ['HEAD', '/v3/releases', 'penstock-api'],
    ['OPTIONS', '/v3/session', 'penstock-edge'],
    ['POST', '/v3/sessions', 'penstock-api'],
    ['POST', '/v1/traces', 'penstock-edge'],
    ['GET', '/', 'penstock-api'],
    ['HEAD', '/', 'penstock-api'],
    ['POST', '/', 'penstock-edge'],
    ['GET', '/console', 'penstock-api'],
    ['GET', '/console/assets/index-abc.js', 'penstock-api'],
    ['GET', '/console/act', 'penstock-api'],
    ['POST', '/console/act', 'penstock-api'],
    ['GET', '/consoles', 'penstock-edge'],
    ['GET', '/.well-known/oauth-protected-resource/mcp', 'penstock-api'],
  ])('sends %s %s to %s', (method, target, backend) => {
    expect(chooseBackend(route, method, target)).toEqual([backend])
  })
})

const found = findNginx()
if ('fault' in found) console.warn(`the tests of nginx are skipped: ${found.fault}`)

describe.skipIf('fault' in found)('nginx', () => {
  let dir: string
  let servers: Server[]
  let proxy: RunningProxy

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-nginx-'))
    const authority = createAuthority(join(dir, 'ca'))
    setDefaultCACertificates([...getCACertificates('default'), authority.pem])
    const started = await Promise.all(['edge', 'api'].map(name => startNamed(name)))
    servers = started.map(({ server }) => server)
    const [edge, api] = started.map(({ address }) => [address])
    proxy = await startNginx('command' in found ? found.command : '', {
      dir,
      edges: edge ?? [],
      apis: api ?? [],
      certificate: authority.issue('localhost'),
      requestsPerAddress: 4,
    })
  })
  afterAll(async () => {
    await proxy?.stop()
    for (const server of servers ?? []) server.close()
    await rm(dir, { recursive: true, force: true })
  })

  it.each(operations)('sends $name to the process that serves it', async ({ method, target, servedBy }) => {
    for (const query of ['', '?a=/v3/session&b=/v3/findings']) {
      expect(await ask(method, target + query)).toEqual({ by: servedBy[0], url: target + query })
    }
  })

  it.each([
    ['OPTIONS', '/v3/releases/any-id/source-maps', 'edge'],
    ['DELETE', '/v3/releases/any-id/telemetry', 'edge'],
    ['POST', '/v3/releases/any-id', 'api'],
    ['OPTIONS', '/v3/session', 'edge'],
    ['PATCH', '/v3/replay/upload/any-id', 'edge'],
    ['POST', '/v3/sessions', 'api'],
    ['POST', '/v1/traces', 'edge'],
    ['GET', '/', 'api'],
    ['HEAD', '/?from=mail', 'api'],
    ['POST', '/', 'edge'],
    ['GET', '/console', 'api'],
    ['GET', '/console/traces/abc?span=def', 'api'],
    ['GET', '/console/assets/index-abc.js', 'api'],
    ['GET', '/console/act?token=1.ws_1.fnd_1', 'api'],
    ['POST', '/console/act', 'api'],
    ['GET', '/consoles', 'edge'],
    ['GET', '/.well-known/oauth-protected-resource', 'api'],
    ['GET', '/.well-known/oauth-protected-resource/mcp', 'api'],
    ['GET', '/v3x', 'edge'],
  ])('sends %s %s to the %s', async (method, target, by) => {
    expect(await ask(method, target)).toEqual({ by, url: target })
  })

  it('sends what no process serves to another one than the HTTPRoute only below /v3/releases', async () => {
    const route = await readRoute()
    const differences: string[] = []
    for (const target of new Set([
      ...operations.map(each => each.target),
      '/',
      '/console',
      '/console/any-page',
      '/v3',
    ])) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const { by } = await ask(method, target)
        const [backend] = chooseBackend(route, method, target)
        if (backend !== `penstock-${by}`) differences.push(`${method} ${target}: ${by}`)
      }
    }
    // A Gateway compares prefixes, so it cannot tell a release from what is below it. Both refuse these requests: with 405 here,
    // because the process knows the path, and with 404 or 405 behind a Gateway.
    const below = ['source-maps', 'source-maps/complete', 'source-maps/sign', 'source-maps/upload', 'telemetry']
    expect(differences.sort()).toEqual(
      [
        'PUT /v3/releases: api',
        ...['POST', 'PUT'].map(method => `${method} /v3/releases/any-id: api`),
        ...['GET', 'PATCH', 'DELETE', 'OPTIONS'].flatMap(method =>
          below.map(part => `${method} /v3/releases/any-id/${part}: edge`),
        ),
      ].sort(),
    )
  })

  it('passes paths on as they were sent', async () => {
    for (const id of ['a%2Fb', 'a%2F..%2F..%2Fsession', 'x%2e%2e', 'caf%C3%A9', 'a+b%20c', 'a//b']) {
      const target = `/v3/sessions/${id}?cursor=%2F%2e%2e`
      expect(await ask('GET', target)).toEqual({ by: 'api', url: target })
    }
  })

  it('refuses more requests of one address at once than it may have, as the service refuses', async () => {
    const leave = new AbortController()
    const held = Array.from({ length: 4 }, () => fetch(`${proxy.baseUrl}/hang`, { signal: leave.signal }))
    const ended = Promise.allSettled(held)
    const headers = { origin: 'https://shop.example' }
    const answers = await Promise.all(
      ['/drain/v1/traces', '/v3/findings'].map(path =>
        until('it is refused', async () => {
          const response = await fetch(proxy.baseUrl + path, { headers })
          return response.status === 429 ? response : undefined
        }),
      ),
    )
    const message = 'too many requests of this address are in progress; retry after the delay'
    const problem = { code: 'INGEST_BACKPRESSURE', message }
    expect(await Promise.all(answers.map(answer => answer.json()))).toEqual([
      problem,
      { ...problem, service: 'gateway' },
    ])
    for (const answer of answers) expect(answer.headers.get('retry-after')).toBe('1')
    expect(answers.map(answer => answer.headers.get('access-control-allow-origin'))).toEqual([headers.origin, null])
    leave.abort()
    await ended
    await until('others are accepted', async () => (await fetch(`${proxy.baseUrl}/v3/findings`)).status === 200)
  })

  async function ask(method: string, target: string): Promise<{ by: string | null; url: string | null }> {
    const response = await fetch(proxy.baseUrl + target, { method })
    return { by: response.headers.get('x-name'), url: response.headers.get('x-url') }
  }
})

async function readRoute(): Promise<HttpRoute> {
  const file = new URL('../../../deploy/proxy/gateway/httproute.yaml', import.meta.url)
  return load(await readFile(file, 'utf8')) as HttpRoute
}

/** Starts a server that answers with its name and the target of the request. */
async function startNamed(name: string): Promise<{ server: Server; address: string }> {
  const server = createServer((request, response) => {
    if (request.url === '/hang') return
    response.writeHead(200, { 'x-name': name, 'x-url': request.url })
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}
