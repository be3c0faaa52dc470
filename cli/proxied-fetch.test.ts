import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generateKey } from '../shared/ids/credentials.ts'

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))
let dist: string
let answer: (socket: Duplex) => void
const connects: string[] = []

// The service knows no key, which ends the command.
const service = createServer((_request, response) => response.writeHead(401).end())
const proxy = createServer().on('connect', (request, socket) => {
  connects.push(request.url ?? '')
  socket.on('error', () => {})
  answer(socket)
})
const portOf = (server: typeof proxy) => (server.address() as AddressInfo).port

beforeAll(async () => {
  for (const server of [service, proxy]) await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  dist = await mkdtemp(join(tmpdir(), 'penstock-proxy-'))
  await writeFile(join(dist, 'a.js'), '')
  await writeFile(join(dist, 'a.js.map'), '{"version":3,"mappings":""}')
})
afterAll(async () => {
  for (const server of [service, proxy]) server.closeAllConnections()
  for (const server of [service, proxy]) server.close()
  await rm(dist, { recursive: true })
})

function upload(env: Readonly<Record<string, string>>, host: string): Promise<{ code: number; stderr: string }> {
  connects.length = 0
  const url = `http://${host}:${portOf(service)}`
  const args = ['sourcemaps', 'upload', dist, '--version', '1', '--url', url, '--retry-timeout', '0.5', '--no-inject']
  const all = { PENSTOCK_SECRET_KEY: generateKey('secret'), ...env }
  return new Promise(resolve => {
    const child = execFile(process.execPath, [MAIN, ...args], { env: all, cwd: tmpdir() }, (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stderr }),
    )
  })
}

const tunnel = (socket: Duplex) => {
  const onward = connect(portOf(service), '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    socket.pipe(onward).pipe(socket)
  })
  onward.on('error', () => socket.destroy())
}

it.each([['HTTP_PROXY'], ['http_proxy']])('sends the requests of a command through the proxy in %s', async name => {
  answer = tunnel
  const { stderr } = await upload({ [name]: `http://127.0.0.1:${portOf(proxy)}` }, 'penstock.invalid')
  expect(stderr).toContain('api_key_rejected')
  expect(connects).toEqual([`penstock.invalid:${portOf(service)}`])
})

it('sends no request to a host in NO_PROXY through it', async () => {
  const env = { HTTP_PROXY: `http://127.0.0.1:${portOf(proxy)}`, NO_PROXY: 'a.test,127.0.0.1' }
  expect((await upload(env, '127.0.0.1')).stderr).toContain('api_key_rejected')
  expect(connects).toEqual([])
})

it.each([
  ['closes the connection', (socket: Duplex) => socket.end(), 'the proxy closed the connection'],
  ['refuses', (socket: Duplex) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'), 'the proxy answered 403'],
])('ends with an error when the proxy %s', async (_name, act, reason) => {
  answer = act
  const { code, stderr } = await upload({ HTTP_PROXY: `http://127.0.0.1:${portOf(proxy)}` }, 'penstock.invalid')
  expect([code, stderr]).toEqual([1, expect.stringContaining(`registering the release: ${reason}`)])
  expect(connects.length).toBeLessThan(10)
})
