import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MIN_REQUEST_COST } from '../../../ingest/admission/request-cost.ts'
import { RETRY_INFO } from '../../../schemas/http/telemetry.ts'
import { KIB, MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { deletePayloads, queuedFrames } from '../../support/queued-payloads.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const url = `${sharedServices().redisUrl}/8`
const keys = queueKeys('traces')
let redis: Redis
let edge: TestEdge
let publicKey: string

beforeAll(async () => {
  redis = connectConsumer(url, pino({ level: 'silent' }))
  await redis.flushdb()
  publicKey = await issueKey(createDirectory(redis))
  edge = await startEdge(url)
})

beforeEach(async () => {
  await deletePayloads(redis, 'traces')
})

afterAll(async () => {
  await edge?.stop()
  redis?.disconnect()
})

/** Encodes a message with one field, like an export with one resource. */
const EXPORT = Buffer.from(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(Buffer.alloc(100, 7)).finish())

const JSON_TYPE = { 'content-type': 'application/json' }

interface Post {
  path?: string
  headers?: Record<string, string>
  body?: Buffer
}

async function post({ path = '/drain/v1/traces', headers = {}, body = EXPORT }: Post = {}) {
  const response = await fetch(edge.baseUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey, ...headers },
    body: new Uint8Array(body),
  })
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
}

const acknowledged = () => queuedFrames(redis, 'traces')

async function expectServing(): Promise<void> {
  expect((await post()).status).toBe(200)
}

describe('an accepted export', () => {
  it('is answered with the empty message and is in Redis with its job, as it was sent', async () => {
    const before = Date.now()
    const answer = await post()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/x-protobuf')
    expect(answer.body).toHaveLength(0)
    const [frame] = await acknowledged()
    expect(frame).toMatchObject({ workspaceId: 'ws_1', surfaceId: 'srf_1', contentEncoding: 'identity' })
    expect(frame?.body).toEqual(EXPORT)
    expect(frame?.receivedAtMs).toBeGreaterThanOrEqual(before)
    const [key] = await redis.keys(`${keys.payloadPrefix}*`)
    const job = keys.job('express', (key as string).slice(keys.payloadPrefix.length))
    await until('the job is added', () => redis.exists(job))
  })

  it('is accepted with the key in the query when the header is empty or absent', async () => {
    const path = `/drain/v1/traces?public_key=${publicKey}`
    expect((await post({ path, headers: { 'x-service-public-key': '' } })).status).toBe(200)
    expect((await post({ path, headers: { 'x-service-public-key': generateKey('public') } })).status).toBe(401)
  })

  it('is kept compressed as it was sent', async () => {
    const body = gzipSync(EXPORT)
    expect((await post({ body, headers: { 'content-encoding': 'gzip' } })).status).toBe(200)
    expect(await acknowledged()).toMatchObject([{ contentEncoding: 'gzip', body }])
  })

  it('is answered in JSON when it is JSON', async () => {
    const body = Buffer.from('\ufeff \n{"resourceSpans":[]}')
    const answer = await post({ body, headers: { 'content-type': 'application/json; charset=utf-8' } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.body.toString()).toBe('{}')
    expect(await acknowledged()).toMatchObject([{ contentType: 'application/json', body }])
  })

  it('names the credential that an unauthenticated request lacks', async () => {
    const challenge = 'ApiKey realm="penstock", header="x-service-public-key", query="public_key"'
    const challenged = async (key: string) =>
      (await post({ headers: { 'x-service-public-key': key } })).headers.get('www-authenticate')
    expect(await challenged('')).toBe(challenge)
    expect(await challenged(generateKey('public'))).toBe(`${challenge}, error="invalid_key"`)
  })

  it('is accepted when it is empty', async () => {
    expect((await post({ body: Buffer.alloc(0) })).status).toBe(200)
    expect(await acknowledged()).toEqual([])
  })

  it('is kept when it is one of many at once', async () => {
    const answers = await Promise.all(Array.from({ length: 300 }, () => post()))
    expect(answers.every(answer => answer.status === 200)).toBe(true)
    expect(await acknowledged()).toHaveLength(300)
    expect((await redis.keys(`${keys.payloadPrefix}*`)).length).toBeLessThan(300)
  })
})

describe('at the address that clients append to an endpoint', () => {
  const path = '/v1/traces'

  it('an export is accepted in both encodings', async () => {
    expect((await post({ path })).status).toBe(200)
    const json = await post({ path, headers: JSON_TYPE, body: Buffer.from('{"resourceSpans":[]}') })
    expect([json.status, json.body.toString()]).toEqual([200, '{}'])
    expect(await acknowledged()).toHaveLength(2)
  })

  it('a refusal is a status of OTLP in the encoding of the request', async () => {
    const wrongKey = { 'x-service-public-key': generateKey('public') }
    const message = 'the public key is unknown'
    const json = await post({ path, headers: { ...JSON_TYPE, ...wrongKey } })
    expect([json.status, JSON.parse(json.body.toString())]).toEqual([401, { code: 16, message }])
    const protobuf = await post({ path, headers: wrongKey })
    expect([protobuf.status, protobuf.headers.get('content-type')]).toEqual([401, 'application/x-protobuf'])
    expect(readStatus(protobuf.body)).toEqual({ code: 16, message, retryDelay: undefined })
    expect(protobuf.headers.get('www-authenticate')).toContain('error="invalid_key"')
    const large = await post({ path, body: Buffer.alloc(21 * MIB) })
    expect([large.status, readStatus(large.body).code]).toEqual([413, 8])
    const unknown = await post({ path: '/v1/profiles' })
    expect([unknown.status, readStatus(unknown.body).code]).toEqual([404, 5])
    const text = await post({ path, headers: { 'content-type': 'text/csv' } })
    expect([text.status, JSON.parse(text.body.toString()).code]).toEqual([415, 12])
  })

  it('a refusal that ends states when to send again', async () => {
    const small = await startEdge(url, { QUEUE_MAX_COST: '1' })
    const send = (type: string, body: Buffer | string) =>
      fetch(small.baseUrl + path, {
        method: 'POST',
        headers: { 'content-type': type, 'x-service-public-key': publicKey },
        body: typeof body === 'string' ? body : new Uint8Array(body),
      })
    const json = await send('application/json', '{}')
    const protobuf = await send('application/x-protobuf', EXPORT)
    const seconds = Number(protobuf.headers.get('retry-after'))
    expect(await json.json()).toMatchObject({ code: 14, details: [{ '@type': RETRY_INFO }] })
    expect([protobuf.status, readStatus(Buffer.from(await protobuf.arrayBuffer()))]).toEqual([
      429,
      { code: 14, message: expect.stringMatching(/retry after the delay/), retryDelay: seconds },
    ])
    await small.stop()
  })

  it.each(['Bearer ', 'Bearer%20'])('the key may follow "%s"', async scheme => {
    const headers = { 'x-service-public-key': '', authorization: scheme + publicKey }
    expect((await post({ path, headers })).status).toBe(200)
  })
})

/** Reads a `google.rpc.Status` with at most one detail. */
function readStatus(bytes: Buffer) {
  const status = fieldsOf(bytes)
  const detail = status.get(3)
  const retry =
    detail instanceof Uint8Array
      ? fieldsOf(fieldsOf(fieldsOf(detail).get(2) as Uint8Array).get(1) as Uint8Array)
      : undefined
  return {
    code: status.get(1),
    message: Buffer.from(status.get(2) as Uint8Array).toString(),
    retryDelay: retry?.get(1),
  }
}

/** Reads the fields of a message, each of which is there at most once. */
function fieldsOf(bytes: Uint8Array): Map<number, number | Uint8Array> {
  const reader = new BinaryReader(bytes)
  const fields = new Map<number, number | Uint8Array>()
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    fields.set(field, type === WireType.Varint ? reader.int32() : reader.bytes())
  }
  return fields
}

describe('an export is refused with a reason, and the next request is served', () => {
  const refusals: [string, () => Post, number, RegExp][] = [
    ['no key', () => ({ headers: { 'x-service-public-key': '' } }), 401, /public key is required/],
    ['an unknown key', () => ({ headers: { 'x-service-public-key': generateKey('public') } }), 401, /unknown/],
    [
      'a key with a wrong checksum',
      () => ({ headers: { 'x-service-public-key': `${publicKey.slice(0, -1)}_` } }),
      401,
      /malformed/,
    ],
    [
      'a secret key',
      () => ({ headers: { 'x-service-public-key': generateKey('secret') } }),
      401,
      /takes a public key of a surface/,
    ],
    ['an unknown signal', () => ({ path: '/drain/v1/profiles' }), 404, /signal must be one of/],
    ['an unknown content type', () => ({ headers: { 'content-type': 'text/csv' } }), 415, /content-type must be/],
    ['an unknown encoding', () => ({ headers: { 'content-encoding': 'br' } }), 415, /content-encoding must be/],
    ['a truncated message', () => ({ body: EXPORT.subarray(0, 50) }), 400, /not a protobuf message/],
    ['text', () => ({ body: Buffer.from('{"resourceSpans":[]}') }), 400, /not a protobuf message/],
    ['JSON that is not an object', () => ({ headers: JSON_TYPE, body: Buffer.from(' []') }), 400, /must begin with {/],
    ['no JSON at all', () => ({ headers: JSON_TYPE, body: Buffer.alloc(0) }), 400, /must begin with {/],
    ['no gzip', () => ({ headers: { 'content-encoding': 'gzip' } }), 400, /does not begin as gzip/],
    ['no zstd', () => ({ headers: { 'content-encoding': 'zstd' } }), 400, /does not begin as zstd/],
    [
      'no deflate',
      () => ({ headers: { 'content-encoding': 'deflate' }, body: Buffer.from([6, 0]) }),
      400,
      /does not begin as deflate/,
    ],
    ['100,001 resources', () => ({ body: Buffer.alloc(200_002, Buffer.from([10, 0])) }), 400, /too many resources/],
    ['21 MiB', () => ({ body: Buffer.alloc(21 * MIB) }), 413, /20 MiB/],
  ]

  it.each(refusals)('%s', async (_name, request, status, message) => {
    const answer = await post(request())
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json')
    const body = JSON.parse(answer.body.toString())
    expect(Object.keys(body)).toEqual(['message'])
    expect(body.message).toMatch(message)
    expect(body.message).not.toContain(publicKey)
    expect(await acknowledged()).toEqual([])
    await expectServing()
  })

  it('when the client disconnects in the middle of its body', async () => {
    for (let i = 0; i < 20; i++) {
      const socket = await openExport(1000)
      socket.write(Buffer.alloc(500))
      socket.destroy()
    }
    await expectServing()
    expect(await acknowledged()).toHaveLength(1)
  })

  it('when its body exceeds the limit and never ends', async () => {
    const socket = connectSocket(edge.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.on('error', () => {}) // the server may close while this still writes
    let answer = ''
    socket.on('data', data => {
      answer += data
    })
    socket.write(
      `POST /drain/v1/traces HTTP/1.1\r\nhost: x\r\nx-service-public-key: ${publicKey}\r\ncontent-type: application/x-protobuf\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    const chunk = Buffer.concat([
      Buffer.from(`${(64 * KIB).toString(16)}\r\n`),
      Buffer.alloc(64 * KIB),
      Buffer.from('\r\n'),
    ])
    const writing = setInterval(() => {
      for (let i = 0; i < 16 && !socket.destroyed; i++) socket.write(chunk)
    }, 5)
    await until('the connection is ended', () => socket.destroyed || socket.readableEnded)
    clearInterval(writing)
    socket.destroy()
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(answer).toMatch(/20 MiB/)
    await expectServing()
  })

  async function openExport(contentLength: number): Promise<Socket> {
    const socket = connectSocket(edge.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write(
      `POST /drain/v1/traces HTTP/1.1\r\nhost: x\r\nx-service-public-key: ${publicKey}\r\ncontent-type: application/x-protobuf\r\ncontent-length: ${contentLength}\r\n\r\n`,
    )
    return socket
  }
})

describe('keys', () => {
  it('stop working within a second of their revocation', async () => {
    const directory = createDirectory(redis)
    const key = await issueKey(directory)
    const headers = { 'x-service-public-key': key }
    expect((await post({ headers })).status).toBe(200)
    const record = await directory.surfaceKeyByDigest(digestOf(key))
    if (!record) throw new Error('the key is not stored')
    await directory.putSurfaceKey({ ...record, revokedAt: new Date().toISOString() })
    await until('the key is refused', async () => (await post({ headers })).status === 401, { deadlineMs: 1_000 })
  })

  it('work as soon as they are created, even if they were refused before', async () => {
    const directory = createDirectory(redis)
    const key = generateKey('public')
    const headers = { 'x-service-public-key': key }
    expect((await post({ headers })).status).toBe(401)
    await issueKey(directory, { digest: digestOf(key) })
    await until('the key is accepted', async () => (await post({ headers })).status === 200, { deadlineMs: 1_000 })
  })

  it('expire', async () => {
    const expiresAt = new Date(Date.now() + 400).toISOString()
    const key = await issueKey(createDirectory(redis), { expiresAt })
    const headers = { 'x-service-public-key': key }
    expect((await post({ headers })).status).toBe(200)
    await until('the key is refused', async () => (await post({ headers })).status === 401, { deadlineMs: 1_500 })
  })
})

describe('CORS', () => {
  it('lets a browser of any origin send its key and read the response', async () => {
    const preflight = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://shop.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-service-public-key,content-type',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('https://shop.example')
    expect(preflight.headers.get('access-control-allow-credentials')).toBe('true')
    expect(preflight.headers.get('access-control-max-age')).toBe('86400')
    expect(preflight.headers.get('access-control-allow-headers')).toContain('x-service-public-key')
    const refused = await post({ headers: { origin: 'https://shop.example', 'x-service-public-key': '' } })
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://shop.example')
    expect(refused.headers.get('access-control-expose-headers')).toMatch(/retry-after/i)
  })
})

describe('backpressure', () => {
  it('returns 429 with Retry-After while a surface is over its share, and accepts again when its requests are done', async () => {
    await redis.del(keys.flow, keys.shares)
    const small = await startEdge(url, { QUEUE_MAX_COST: String(10 * MIN_REQUEST_COST) })
    try {
      const send = () =>
        fetch(`${small.baseUrl}/drain/v1/traces`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': publicKey },
          body: new Uint8Array(EXPORT),
        })
      const refused = await until('the surface has its share', async () => {
        const answer = await send()
        return answer.status === 429 ? answer : undefined
      })
      // A request that is accepted while a poll is in progress counts twice until the next one.
      expect([4, 5]).toContain((await acknowledged()).length)
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
      expect(await refused.json()).toEqual({
        code: 'INGEST_BACKPRESSURE',
        message: expect.stringContaining('over its share'),
      })
      await redis.del(keys.flow, keys.shares)
      await until('the queue accepts again', async () => (await send()).status === 200)
    } finally {
      await small.stop()
    }
  })
})
