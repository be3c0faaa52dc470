import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { freePort } from '../../deploy/local/ports.ts'
import type { ChildProcess } from '../../deploy/local/processes/child-process.ts'
import { startNodeProcess } from '../../deploy/local/processes/processes.ts'
import { KIB, MIB } from '../../schemas/units.ts'
import { encodeReplayMetadata } from '../support/clients/encode-replay-metadata.ts'
import { EXPORT_METHODS, GrpcClient } from '../support/clients/grpc-client.ts'
import { createReleaseClient, entryOf, mapOf, PART_BYTES } from '../support/clients/release-client.ts'
import { rounds } from '../support/length.ts'
import { createAuthority } from '../support/proxy/certificates.ts'
import { type EncryptedStores, encryptStores } from '../support/proxy/encrypted-stores.ts'
import { findNginx, type RunningProxy, startNginx } from '../support/proxy/start-nginx.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { spanExport } from '../support/span-exports.ts'
import { until } from '../support/until.ts'

const PUBLIC_URL = 'https://telemetry.example'
const found = findNginx()
if ('fault' in found) console.warn(`the tests of nginx are skipped: ${found.fault}`)

/** Clients reach every process through nginx with TLS, and the processes reach every store with TLS. */
describe.skipIf('fault' in found)('one address', () => {
  const trustedBefore = getCACertificates('default')
  let dir: string
  let stores: EncryptedStores
  let stack: Stack
  let secondEdge: ChildProcess
  let secondAdminUrl: string
  let clickhouse: ClickHouseClient
  let proxy: RunningProxy
  /** The same processes behind a proxy that trusts another one in front of it. */
  let inner: RunningProxy

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-proxy-'))
    const authority = createAuthority(join(dir, 'ca'))
    setDefaultCACertificates([...trustedBefore, authority.pem])
    stack = await startStack(
      { PUBLIC_URL, JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' },
      {
        settingsOf: async services => {
          stores = await encryptStores(services, authority)
          return stores.settings
        },
      },
    )
    clickhouse = createClickHouse({ url: stack.services.clickhouseUrl, database: 'penstock' })
    const [port, adminPort, grpcPort] = [await freePort(), await freePort(), await freePort()]
    secondAdminUrl = `http://127.0.0.1:${adminPort}`
    secondEdge = await startNodeProcess({
      script: 'ingest/main.ts',
      env: {
        ...stack.env,
        INGEST_PORT: String(port),
        INGEST_ADMIN_PORT: String(adminPort),
        INGEST_GRPC_PORT: String(grpcPort),
      },
      adminUrl: secondAdminUrl,
      log: () => {},
      signal: new AbortController().signal,
    })
    const common = {
      edges: [new URL(stack.ingestUrl).host, `127.0.0.1:${port}`],
      apis: [new URL(stack.apiUrl).host],
      grpc: [new URL(stack.grpcUrl).host, `127.0.0.1:${grpcPort}`],
      certificate: authority.issue('localhost'),
    }
    const command = 'command' in found ? found.command : ''
    proxy = await startNginx(command, { ...common, dir: join(dir, 'outer') })
    inner = await startNginx(command, { ...common, dir: join(dir, 'inner'), trusted: ['127.0.0.0/8'] })
  })
  afterAll(async () => {
    setDefaultCACertificates(trustedBefore)
    await proxy?.stop()
    await inner?.stop()
    await secondEdge?.stop()
    await clickhouse?.close()
    await stack?.stop()
    await stores?.close()
    await rm(dir, { recursive: true, force: true })
  })

  const exportBody = (service: string, spanId = randomBytes(8).toString('hex'), padding = '') => {
    const now = `${Date.now()}000000`
    const times = { startTimeUnixNano: now, endTimeUnixNano: now }
    const span = { traceId: randomBytes(16).toString('hex'), spanId, name: 'work', kind: 2, ...times }
    const resource = { attributes: [{ key: 'service.name', value: { stringValue: service } }] }
    return JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }], padding })
  }
  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}, at = proxy) =>
    fetch(`${at.baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': stack.secrets.publicKey, ...headers },
      body,
    })
  const read = async (path: string) => {
    const response = await fetch(proxy.baseUrl + path, {
      headers: { authorization: `Bearer ${stack.secrets.sessionToken}` },
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const countsOf = async (service: string): Promise<Map<string, number>> => {
    const rows = await clickhouse.query({
      query:
        'SELECT lower(hex(span_id)) AS id, count() AS n FROM spans WHERE service_name = {service: String} GROUP BY id',
      query_params: { service },
      format: 'JSONEachRow',
    })
    return new Map((await rows.json<{ id: string; n: string }>()).map(({ id, n }) => [id, Number(n)]))
  }

  it('stores an export, as it is and compressed', async () => {
    expect((await post(exportBody('plain'))).status).toBe(200)
    expect((await post(gzipSync(exportBody('gzip')), { 'content-encoding': 'gzip' })).status).toBe(200)
    for (const service of ['plain', 'gzip']) {
      await until('it is stored', async () => (await countsOf(service)).size === 1)
    }
  })

  it('passes calls of gRPC on, with the key and the receipt, and refusals before a message is sent', async () => {
    const client = new GrpcClient(proxy.baseUrl, { isGzip: true })
    const stored = await client.call(EXPORT_METHODS.traces, Buffer.from(spanExport('gRPC', [randomBytes(8)])), {
      'api-key': stack.secrets.publicKey,
    })
    const refused = await client.call(EXPORT_METHODS.traces, Buffer.alloc(5 * MIB))
    client.close()
    expect([stored.code, stored.trailers.get('x-receipt-id')]).toEqual([status.OK, [expect.any(String)]])
    expect(refused.code).toBe(status.UNAUTHENTICATED)
    await until('it is stored', async () => (await countsOf('gRPC')).size === 1)
  })

  it('serves the methods of /v3/releases from two processes', async () => {
    const client = createReleaseClient(proxy.baseUrl, stack.secrets.secretKey)
    const slug = await client.register('1.0.0')
    expect(JSON.parse((await read('/v3/releases')).text).releases).toMatchObject([{ slug }])
    for (const method of ['PATCH', 'OPTIONS']) {
      const { headers, status } = await fetch(`${proxy.baseUrl}/v3/releases?limit=1`, { method })
      expect([status, headers.get('allow')]).toEqual([method === 'PATCH' ? 405 : 204, 'GET, HEAD, POST, OPTIONS'])
    }
    const { headers } = await fetch(`${proxy.baseUrl}/v3/session`, { method: 'OPTIONS' })
    expect(headers.get('allow')).toBe('POST, OPTIONS')
  })

  it('names one server in the document, and revalidates it', async () => {
    const { text, headers } = await read('/openapi.json')
    expect(JSON.parse(text).servers).toMatchObject([{ url: PUBLIC_URL }])
    const etag = headers.get('etag') as string
    const again = await fetch(`${proxy.baseUrl}/openapi.json`, { headers: { 'if-none-match': etag } })
    expect(again.status).toBe(304)
    for (const url of [stack.ingestUrl, stack.apiUrl]) {
      expect((await fetch(`${url}/openapi.json`)).headers.get('etag')).toBe(etag)
    }
  })

  it('takes source maps in parts and whole, up to the limit of the edge', async () => {
    const client = createReleaseClient(proxy.baseUrl, stack.secrets.secretKey)
    const slug = await client.register('2.0.0')
    const parts = { path: 'parts.js.map', bytes: mapOf('parts', 3 * PART_BYTES) }
    for (const part of [0, 1, 2]) {
      const bytes = parts.bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)
      expect((await client.putPart(slug, parts.path, part, bytes)).status).toBe(200)
    }
    const whole = { path: 'whole.js.map', bytes: mapOf('whole', 64 * MIB) }
    expect((await client.putSingle(slug, whole.path, whole.bytes)).status).toBe(200)
    expect(await client.complete(slug, [entryOf(parts), entryOf(whole)])).toMatchObject({
      status: 200,
      body: { fileCount: 2 },
    })
  })

  it('answers bodies over the limit as the service does, however fast they are sent, and serves others meanwhile', async () => {
    const client = createReleaseClient(proxy.baseUrl, stack.secrets.secretKey)
    const slug = await client.register('3.0.0')
    const stranger = createReleaseClient(proxy.baseUrl, 'sk_nonsense')
    const [atEdge, atProxy] = [mapOf('large', 64 * MIB + 1), mapOf('larger', 80 * MIB)]
    const answers: string[] = []
    for (let round = 0; round < 10; round++) {
      for (const send of [
        () => client.putSingle(slug, 'large.js.map', atEdge),
        () => client.putSingle(slug, 'larger.js.map', atProxy),
        () => stranger.putSingle(slug, 'large.js.map', atEdge),
      ]) {
        const { status, body } = await send()
        answers.push(`${status} ${body.code} ${body.service}`)
      }
      expect((await post(exportBody('large'))).status).toBe(200)
    }
    expect([...new Set(answers)].sort()).toEqual([
      '401 AUTH_MISSING frontier-auth',
      '413 RELEASE_SIGN_FILE_TOO_LARGE frontier-buildtime',
    ])
  })

  it('streams a replay up and down over HTTP/2, and puts none of it on its disk', async () => {
    const sessionId = `replay-${randomBytes(4).toString('hex')}`
    const startMs = Date.now()
    const events = Array.from({ length: 200 }, (_, i) => ({
      type: 3,
      data: { source: i, noise: randomBytes(24 * KIB).toString('hex') },
      timestamp: startMs + i,
    }))
    const body = gzipSync(events.map(event => `${JSON.stringify(event)}\n`).join(''))
    expect(body.length).toBeGreaterThan(4 * MIB)
    const metadata = { windowId: 'w1', segmentId: 0, firstTs: startMs, lastTs: startMs + 199 }
    const session = connectHttp2(proxy.baseUrl)
    const ask = async (headers: Record<string, string>, sent?: Buffer) => {
      const stream = session.request(headers)
      stream.end(sent)
      const [answer] = await once(stream, 'response')
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk)
      return { status: answer[':status'], body: Buffer.concat(chunks).toString() }
    }
    const upload = {
      ':method': 'POST',
      ':path': `/v3/replay/upload/${sessionId}`,
      'x-service-public-key': stack.secrets.publicKey,
      'x-replay-metadata': encodeReplayMetadata(metadata),
      'content-encoding': 'gzip',
    }
    expect(await ask(upload, body)).toMatchObject({ status: 200 })
    const authorization = `Bearer ${stack.secrets.sessionToken}`
    const path = `/v3/sessions/${sessionId}/replay`
    await until('it is indexed', async () => JSON.parse((await read(path)).text).chunks?.length === 1)
    const answer = await ask({ ':method': 'GET', ':path': `${path}/events`, authorization })
    session.close()
    const lines = answer.body.split('\n').filter(line => line !== '')
    expect(lines.map(line => JSON.parse(line))).toEqual(events)
    for (const folder of ['nginx-body', 'nginx-proxy']) expect(await readdir(join(dir, 'outer', folder))).toEqual([])
  })

  it('passes a refusal on before the body is sent', async () => {
    const head = (headers: string) =>
      `POST /drain/v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${headers}\r\n\r\n`
    const wrongKey = await openSocket(head(`x-service-public-key: pk_nonsense\r\ncontent-length: ${19 * MIB}`))
    await until('it is refused', () => wrongKey.received.startsWith('HTTP/1.1 401'))
    const { publicKey } = stack.secrets
    const tooLarge = await openSocket(head(`x-service-public-key: ${publicKey}\r\ncontent-length: ${21 * MIB}`))
    await until('it is refused', () => tooLarge.received.startsWith('HTTP/1.1 413'))
    for (const { socket } of [wrongKey, tooLarge]) socket.destroy()
  })

  it('passes a slow body on while it arrives', async () => {
    const body = exportBody('slow', undefined, 'x'.repeat(200_000))
    const { publicKey } = stack.secrets
    const client = await openSocket(
      `POST /drain/v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
        `x-service-public-key: ${publicKey}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 100_000)}`,
    )
    await until('an edge holds a part of it', async () => (await heldBytes()) > 0)
    expect(client.received).toBe('')
    client.socket.write(body.slice(100_000))
    await until('it is acknowledged', () => client.received.startsWith('HTTP/1.1 200'))
    client.socket.destroy()
  })

  it('believes an address only from a trusted proxy, read from its right end, and logs no key and no query', async () => {
    const key = stack.secrets.publicKey
    const forwarded = { 'x-forwarded-for': '198.51.100.1, 203.0.113.7, 127.0.0.5', forwarded: 'for=198.51.100.2' }
    for (const at of [proxy, inner]) {
      const headers = { 'x-request-id': 'address', 'content-type': 'text/plain', ...forwarded }
      const target = `${at.baseUrl}/v3/session?public_key=${key}x`
      expect((await fetch(target, { method: 'POST', headers, body: '{}' })).status).toBe(401)
    }
    const clientOf = (at: RunningProxy) =>
      until('it is in the log', async () => (await at.accessLog()).find(line => line.requestId === 'address'))
    expect(await clientOf(proxy)).toMatchObject({ client: '127.0.0.1', path: '/v3/session', status: 401 })
    expect(await clientOf(inner)).toMatchObject({ client: '203.0.113.7' })
    for (const at of [proxy, inner]) {
      const text = `${await at.accessLogText()}${at.errorLog.join('\n')}`
      for (const secret of [key, 'public_key', stack.secrets.secretKey, stack.secrets.sessionToken]) {
        expect(text).not.toContain(secret)
      }
    }
  })

  it('adds the headers of TLS, and hides what serves', async () => {
    const { headers } = await read('/v3/findings')
    expect(headers.get('strict-transport-security')).toMatch(/^max-age=\d{8}/)
    expect(headers.get('uwebsockets')).toBeNull()
    expect(headers.get('server')).toBe('nginx')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('loses nothing acknowledged and sends nothing twice when one of two edges is killed', async () => {
    const service = `killed-${randomBytes(4).toString('hex')}`
    const [sent, acknowledged] = [new Set<string>(), new Set<string>()]
    const failures: number[] = []
    let isOver = false
    const client = async () => {
      while (!isOver) {
        const id = randomBytes(8).toString('hex')
        sent.add(id)
        const { status } = await post(exportBody(service, id))
        if (status === 200) acknowledged.add(id)
        else failures.push(status)
      }
    }
    const clients = Array.from({ length: 8 }, client)
    for (let round = 0; round < rounds(3); round++) {
      const before = acknowledged.size
      await until('exports are acknowledged', () => acknowledged.size > before + 100)
      await stack.edge.kill9()
      const atKill = acknowledged.size
      await until('the other edge takes them', () => acknowledged.size > atKill + 100)
      await stack.edge.restart()
    }
    isOver = true
    await Promise.all(clients)
    // Only the requests that the killed edge had begun may fail, and with a status after which a client sends again.
    expect(failures.filter(status => status !== 503)).toEqual([])
    expect(failures.length).toBeLessThanOrEqual(3 * 8)
    const stored = await until('all are stored', async () => {
      const counts = await countsOf(service)
      return [...acknowledged].every(id => counts.has(id)) ? counts : undefined
    })
    expect([...stored].filter(([id, count]) => count !== 1 || !sent.has(id))).toEqual([])
  })

  it('answers as the service does when no edge is left, so that clients and pages retry', async () => {
    await stack.edge.kill9()
    await secondEdge.kill9()
    const response = await post(exportBody('nobody'), { origin: 'https://shop.example', 'x-request-id': 'mine' })
    const { headers } = response
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({ code: 'INGEST_INFRA_UNAVAILABLE', message: expect.any(String) })
    expect(headers.get('retry-after')).toBe('1')
    expect(headers.get('x-request-id')).toBe('mine')
    expect(headers.get('access-control-allow-origin')).toBe('https://shop.example')
    expect((await read('/v3/findings')).status).toBe(200)
    const client = new GrpcClient(proxy.baseUrl)
    const { code, trailers } = await client.call(EXPORT_METHODS.traces, Buffer.alloc(0))
    client.close()
    expect([code, String(trailers.get('grpc-status-details-bin'))]).toEqual([14, expect.stringContaining('RetryInfo')])
    await stack.edge.restart()
    await until('exports are acknowledged again', async () => (await post(exportBody('nobody'))).status === 200)
  })

  async function heldBytes(): Promise<number> {
    const urls = [`http://127.0.0.1:${stack.env.INGEST_ADMIN_PORT}`, secondAdminUrl]
    const texts = await Promise.all(urls.map(async url => (await fetch(`${url}/metrics`)).text()))
    return Math.max(...texts.map(text => Number(/^penstock_held_body_bytes(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1] ?? 0)))
  }

  /** Sends text on a new TLS connection. */
  async function openSocket(text: string): Promise<{ socket: TLSSocket; readonly received: string }> {
    const socket = connect({
      port: proxy.port,
      host: 'localhost',
      servername: 'localhost',
      ALPNProtocols: ['http/1.1'],
    })
    await once(socket, 'secureConnect')
    const client = { socket, received: '' }
    socket.on('data', data => {
      client.received += data.toString()
    })
    socket.on('error', () => {})
    socket.write(text)
    return client
  }
})
