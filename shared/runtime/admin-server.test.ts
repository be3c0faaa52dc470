import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { type AdminServer, createAdminServer } from './admin-server.ts'
import { BUILD } from './build-info.ts'
import { createLogger } from './logger.ts'
import { createMetrics } from './metrics.ts'
import type { Health } from './process/health.ts'

const BUILD_LINE = `version ${BUILD.version}, commit ${BUILD.commit}\n`
const servers: AdminServer[] = []
afterEach(() => Promise.all(servers.splice(0).map(server => server.close())))

async function start(isLive: () => Health | Promise<Health>, isReady: () => Health | Promise<Health>) {
  const metrics = createMetrics('test')
  metrics.counter({ name: 'penstock_things_total', help: 'Things.', labelNames: ['kind'] }).inc({ kind: 'a' }, 3)
  const server = createAdminServer({
    registry: metrics.registry,
    isLive,
    isReady,
    logger: createLogger('test', 'fatal'),
  })
  servers.push(server)
  const base = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`
  return async (path: string, method = 'GET') => {
    const response = await fetch(base + path, { method })
    return { status: response.status, text: await response.text() }
  }
}

/** Starts a healthy server and returns its port. */
function startHealthy(): Promise<number> {
  const server = createAdminServer({
    registry: createMetrics('test').registry,
    isLive: () => true,
    isReady: () => true,
    logger: createLogger('test', 'fatal'),
  })
  servers.push(server)
  return server.listen('127.0.0.1', 0)
}

it('returns 200 for a healthy check, and 503 with the cause for an unhealthy one', async () => {
  const healthy = await start(
    () => true,
    async () => true,
  )
  expect(await healthy('/livez')).toEqual({ status: 200, text: 'ok\n' })
  expect(await healthy('/readyz?verbose')).toEqual({ status: 200, text: `ok\n${BUILD_LINE}` })

  const unhealthy = await start(
    () => 'no job finished for 90 s',
    () => Promise.reject(new Error('redis is unavailable')),
  )
  expect(await unhealthy('/livez')).toEqual({ status: 503, text: 'no job finished for 90 s\n' })
  expect(await unhealthy('/readyz')).toEqual({ status: 503, text: `Error: redis is unavailable\n${BUILD_LINE}` })
})

it('a ready process may have a note for operators, which is a further line', async () => {
  const get = await start(
    () => true,
    () => ({ note: 'the table spans is missing' }),
  )
  expect(await get('/readyz')).toEqual({ status: 200, text: `ok\n${BUILD_LINE}the table spans is missing\n` })
  expect((await get('/metrics')).text).toMatch(/^penstock_ready.* 1$/m)
})

// Linux has all of 127.0.0.0/8, so that 127.0.0.2 is to this server as any other address of the machine.
it.runIf(process.platform === 'linux')('is reachable only at the address that it listens on', async () => {
  const port = await startHealthy()
  expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200)
  await expect(fetch(`http://127.0.0.2:${port}/metrics`)).rejects.toThrow('fetch failed')
})

it.each([
  ['127.0.0.1:4319', 200],
  ['localhost', 200],
  ['LOCALHOST:4319', 200],
  ['[::1]:4319', 200],
  ['10.0.0.7', 200],
  ['evil.example', 421],
  ['evil.example:4319', 421],
  ['localhost.evil.example', 421],
  ['127.0.0.1.evil.example', 421],
  ['[evil]', 421],
])('answers a request of this machine that names %s with %i', async (host, status) => {
  const port = await startHealthy()
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  get({ port, host: '127.0.0.1', path: '/metrics', headers: { host } }, response => {
    response.resume()
    resolve(response.statusCode)
  }).on('error', reject)
  expect(await promise).toBe(status)
})

it('reports a check that hangs as unhealthy', async () => {
  const ask = await start(
    () => true,
    () => new Promise(() => {}),
  )
  expect(await ask('/readyz')).toEqual({ status: 503, text: `Error: the check timed out\n${BUILD_LINE}` })
})

it('serves only the metrics of its registry, with the process as a label', async () => {
  const ask = await start(
    () => true,
    () => true,
  )
  const { status, text } = await ask('/metrics')
  expect(status).toBe(200)
  expect(text).toContain('penstock_things_total{kind="a",process="test"} 3')
  expect(text).toContain('nodejs_eventloop_lag_seconds')
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  expect(text).toContain(`penstock_build_info{version="${version}",commit="unknown",process="test"} 1`)
  expect((await ask('/')).status).toBe(404)
  expect((await ask('/metrics', 'POST')).status).toBe(405)
})
