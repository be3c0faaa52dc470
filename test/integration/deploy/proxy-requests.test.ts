import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { RawConnection } from '../../support/clients/raw-http-client.ts'
import { createAuthority } from '../../support/proxy/certificates.ts'
import { findNginx, type RunningProxy, startNginx } from '../../support/proxy/start-nginx.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const redisUrl = `${sharedServices().redisUrl}/12`
const found = findNginx()
if ('fault' in found) console.warn(`the tests of nginx are skipped: ${found.fault}`)

/** Requests that the edge does not serve as HTTP has them, or not at all (docs/api/requests.md#http). */
const beat = '{"sessionId":"s"}'
const span = gzipSync('{"resourceSpans":[]}').toString('latin1')
const head = (key: string, version = '1.1', path = '/v3/session') =>
  `POST ${path} HTTP/${version}\r\nhost: localhost\r\nx-service-public-key: ${key}\r\ncontent-type: application/json\r\n`
const plain = (key: string, version?: string) => `${head(key, version)}content-length: ${beat.length}\r\n\r\n${beat}`
const chunked = (key: string, extension: string, trailer: string, announced = '') =>
  `${head(key)}${announced}transfer-encoding: chunked\r\n\r\n${beat.length.toString(16)}${extension}\r\n${beat}\r\n0\r\n${trailer}\r\n`

const SERVED_BEHIND_NGINX: readonly [name: string, bytes: (key: string) => string, responses: number][] = [
  ['two requests in a row', key => plain(key) + plain(key), 2],
  ['a chunk extension', key => chunked(key, ';a=b', ''), 1],
  ['trailers', key => chunked(key, '', 'x-sum: 1\r\n'), 1],
  ['announced trailers', key => chunked(key, '', 'x-sum: 1\r\n', 'trailer: x-sum\r\n'), 1],
  ['an empty line before the request', key => `\r\n${plain(key)}`, 1],
  ['HTTP/1.0', key => plain(key, '1.0'), 1],
]

describe.skipIf('fault' in found)('behind nginx', () => {
  let dir: string
  let redis: Redis
  let edge: TestEdge
  let proxy: RunningProxy
  let key: string

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-requests-'))
    const authority = createAuthority(join(dir, 'ca'))
    setDefaultCACertificates([...getCACertificates('default'), authority.pem])
    redis = new Redis(redisUrl)
    await redis.flushdb()
    key = await issueKey(createDirectory(redis))
    edge = await startEdge(redisUrl)
    const edges = [`127.0.0.1:${edge.port}`]
    const options = { dir, edges, apis: edges, certificate: authority.issue('localhost') }
    proxy = await startNginx('command' in found ? found.command : '', options)
  })
  afterAll(async () => {
    await proxy?.stop()
    await edge?.stop()
    redis?.disconnect()
    await rm(dir, { recursive: true, force: true })
  })

  const accepted = async () => Number((await redis.hget(queueKeys('sessions').flow, 'acceptedPayloads')) ?? 0)

  /** Sends bytes through nginx and returns the status of each response. */
  async function statuses(bytes: string, responses: number): Promise<number[]> {
    const socket = connect({
      port: proxy.port,
      host: 'localhost',
      servername: 'localhost',
      ALPNProtocols: ['http/1.1'],
    })
    let received = ''
    let isClosed = false
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
    })
    socket.on('close', () => {
      isClosed = true
    })
    socket.write(bytes, 'latin1')
    const answered = () => [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
    await until('the responses', () => isClosed || answered().length >= responses)
    socket.destroy()
    return answered()
  }

  it.each(SERVED_BEHIND_NGINX)('%s: each request is accepted once and answered', async (_name, bytes, responses) => {
    const before = await accepted()
    expect(await statuses(bytes(key), responses)).toEqual(Array.from({ length: responses }, () => 200))
    expect((await accepted()) - before).toBe(responses)
  })

  it('two different lengths are refused, and nothing is accepted', async () => {
    const before = await accepted()
    const bytes = `${head(key)}content-length: ${beat.length}\r\ncontent-length: 5\r\n\r\n${beat}`
    expect(await statuses(bytes, 1)).toEqual([400])
    const direct = new RawConnection(edge.port).send(bytes)
    expect(await direct.response()).toMatchObject({ status: 400, headers: { connection: 'close' } })
    await direct.end()
    expect(await accepted()).toBe(before)
  })

  it('x-gzip is gzip, as it is without a proxy', async () => {
    const bytes = `${head(key, '1.1', '/v1/traces')}content-encoding: x-gzip\r\ncontent-length: ${span.length}\r\n\r\n${span}`
    expect(await statuses(bytes, 1)).toEqual([200])
    const direct = new RawConnection(edge.port).send(Buffer.from(bytes, 'latin1'))
    expect(await direct.response()).toMatchObject({ status: 200 })
    direct.socket.destroy()
  })

  it.each<[name: string, bytes: (key: string) => string, received: RegExp]>([
    ['HTTP/1.0', key => plain(key, '1.0'), /^HTTP\/1\.1 505 /],
    ['announced trailers', key => chunked(key, '', 'x-sum: 1\r\n', 'trailer: x-sum\r\n'), /^HTTP\/1\.1 (400|505) /],
  ])('without nginx, nothing is accepted of %s', async (_name, bytes, received) => {
    const before = await accepted()
    const direct = new RawConnection(edge.port).send(bytes(key))
    await direct.end()
    expect(direct.received).toMatch(received)
    expect(await accepted()).toBe(before)
  })
})
