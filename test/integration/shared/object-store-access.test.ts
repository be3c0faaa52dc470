import { randomBytes, randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import { FaultProxy } from '../../support/chaos/fault-proxy.ts'
import { type CountingProxy, startCountingProxy } from '../../support/services/counting-proxy.ts'
import type { S3Access } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

const TEXT = { contentType: 'text/plain' }
const provided = inject('s3')

describe.skipIf(provided === null)('a presigned address', () => {
  const access = provided as S3Access
  const body = Buffer.from('{"version":3}')
  const options = { contentType: 'application/json', contentLength: body.length, expiresInS: 60 }
  const headers = { 'content-type': 'application/json' }
  let store: ObjectStore
  beforeAll(() => {
    store = createObjectStore({ ...access, requestTimeoutMs: 10_000 })
  })
  afterAll(() => store?.close())

  it('accepts the signed body from any client until it expires', async () => {
    const key = `${randomUUID()}/signed +%2F/ü`
    const { url, expiresAtMs } = await store.presignPut(key, options)
    expect(expiresAtMs - Date.now()).toBeGreaterThan(50_000)
    expect(expiresAtMs - Date.now()).toBeLessThanOrEqual(60_000)
    expect(url).not.toContain(access.secretAccessKey)
    expect(await put(url, { headers, body })).toBe(200)
    expect(await store.get(key, 100)).toMatchObject({ contentType: 'application/json', body })

    const read = await store.presignGet(key, 60)
    expect(await (await fetch(read.url)).text()).toBe(body.toString())
  })

  it('refuses another length, another type, another key, another method and an empty body', async () => {
    const key = `${randomUUID()}/signed`
    const { url } = await store.presignPut(key, options)
    const other = new URL(url)
    other.pathname += '-other'
    const stream = () => new Blob([body]).stream()
    expect(await put(url, { headers, body: Buffer.concat([body, Buffer.from(' ')]) })).toBe(403)
    expect(await put(url, { headers, body: body.subarray(1) })).toBe(403)
    expect(await put(url, { headers, body: stream(), duplex: 'half' })).toBeGreaterThanOrEqual(400)
    expect(await put(url, { headers: { 'content-type': 'text/html' }, body })).toBe(403)
    expect(await put(url, { body })).toBe(403)
    expect(await put(other.href, { headers, body })).toBe(403)
    expect(await put(url, { headers })).toBe(403)
    expect((await fetch(url)).status).toBe(403)
    expect(await store.head(key)).toBeUndefined()
    expect(await put(url, { headers, body })).toBe(200)
  })

  it('expires', async () => {
    const key = `${randomUUID()}/signed`
    const before = createObjectStore({ ...access, requestTimeoutMs: 10_000 }, () => Date.now() - 61_000)
    await store.put(key, Buffer.from('kept'), TEXT)
    const [write, read] = [await before.presignPut(key, options), await before.presignGet(key, 60)]
    before.close()
    expect(write.expiresAtMs).toBeLessThan(Date.now())
    expect(await put(write.url, { headers, body })).toBe(403)
    expect((await fetch(read.url)).status).toBe(403)
    expect((await store.get(key, 100))?.body.toString()).toBe('kept')
  })

  async function put(url: string, request: RequestInit): Promise<number> {
    const response = await fetch(url, { method: 'PUT', signal: AbortSignal.timeout(10_000), ...request })
    await response.arrayBuffer()
    return response.status
  }
})

describe.skipIf(provided === null)('connections and credentials', () => {
  const access = provided as S3Access
  const size = 32 * MIB
  const key = `${randomUUID()}/streamed`
  let proxy: CountingProxy
  let store: ObjectStore
  beforeAll(async () => {
    proxy = await startCountingProxy(access.endpoint)
    store = createObjectStore({ ...access, endpoint: proxy.url, requestTimeoutMs: 10_000 })
    await store.put(key, randomBytes(size), TEXT)
  })
  afterAll(async () => {
    store?.close()
    await proxy?.close()
  })

  it('a stream that is not read slows the server down, and can then be read to its end', async () => {
    const before = proxy.bytesAnswered
    const stream = await store.getStream(key)
    let last = -1
    await until(
      'no more bytes come',
      () => {
        const same = proxy.bytesAnswered === last
        last = proxy.bytesAnswered
        return same
      },
      { everyMs: 200 },
    )
    expect(last - before).toBeLessThan(size / 2)
    let read = 0
    for await (const chunk of stream?.body ?? []) read += chunk.length
    expect(read).toBe(size)
  })

  it.each([
    [
      'is left in the middle',
      async (body: Readable) => {
        for await (const _chunk of body) break
      },
    ],
    [
      'is destroyed before it was read',
      async (body: Readable) => {
        body.destroy()
      },
    ],
  ])('a stream that %s leaves no connection open', async (_name, leave) => {
    const before = proxy.bytesAnswered
    const stream = await store.getStream(key)
    expect(proxy.openConnections).toBeGreaterThan(0)
    if (stream) await leave(stream.body)
    await until('its connection is closed', () => proxy.openConnections === 0)
    expect(proxy.bytesAnswered - before).toBeLessThan(size)
  })

  it('an object over the limit is not read', async () => {
    const before = proxy.bytesAnswered
    await expect(store.get(key, 1_000)).rejects.toThrow(PermanentError)
    expect(proxy.bytesAnswered - before).toBeLessThan(size)
  })

  it('connections that the network has forgotten cost one call, however many there are', async () => {
    const network = await FaultProxy.start(Number(new URL(access.endpoint).port))
    const other = createObjectStore({ ...access, endpoint: network.before(access.endpoint), requestTimeoutMs: 2_000 })
    await Promise.all(Array.from({ length: 5 }, () => other.head(key)))
    network.forget()
    await expect(other.head(key)).rejects.toThrow('no answer within 2000 ms')
    expect((await other.head(key))?.size).toBe(size)
    other.close()
    await network.close()
  })

  it('closing leaves no connection open', async () => {
    const ownProxy = await startCountingProxy(access.endpoint)
    const other = createObjectStore({ ...access, endpoint: ownProxy.url, requestTimeoutMs: 10_000 })
    await Promise.all(Array.from({ length: 5 }, () => other.head(key)))
    expect(ownProxy.openConnections).toBeGreaterThan(0)
    other.close()
    await until('its connections are closed', () => ownProxy.openConnections === 0)
    await ownProxy.close()
  })

  it.each([
    ['secret', { secretAccessKey: 'a-secret-of-mine' }],
    ['access key', { accessKeyId: 'unknown-key', secretAccessKey: 'a-secret-of-mine' }],
  ])('a wrong %s is a transient error whose report contains no secret', async (_name, wrong) => {
    const other = createObjectStore({ ...access, ...wrong, requestTimeoutMs: 10_000 })
    const calls = [
      other.put(key, Buffer.from('a'), TEXT),
      other.get(key, size),
      other.head(key),
      other.deleteMany([key]),
    ]
    for (const call of await Promise.allSettled(calls)) {
      if (call.status === 'fulfilled') throw new Error('it was let in')
      expect(call.reason).toBeInstanceOf(TransientError)
      expect(inspect(call.reason, { depth: 20, showHidden: true })).not.toContain('a-secret-of-mine')
    }
    other.close()
    expect((await store.head(key))?.size).toBe(size)
  })
})
