import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterEach, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { countAwakeMs } from '../../test/support/count-awake-ms.ts'
import { PermanentError, TransientError } from '../runtime/errors.ts'
import { createObjectStore } from './object-store.ts'
import type { ObjectStore, StreamedObject } from './types.ts'

const TEXT = { contentType: 'text/plain' }
const BODY = Buffer.from('body')
const DEADLINE_MS = 10_000
/** For what must reach its deadline, or outlast it. */
const SHORT_DEADLINE_MS = 400
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** A store in front of a server that answers as an S3 server only rarely does. */
async function storeAgainst(listener: RequestListener, requestTimeoutMs = DEADLINE_MS): Promise<ObjectStore> {
  const server = createServer(listener)
  await listen(server)
  cleanUps.push(() => closed(server))
  return connectTo((server.address() as AddressInfo).port, requestTimeoutMs)
}

function connectTo(port: number, requestTimeoutMs: number): ObjectStore {
  const store = createObjectStore({
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    bucket: 'b',
    accessKeyId: 'key',
    secretAccessKey: 'secret',
    requestTimeoutMs,
  })
  cleanUps.push(() => store.close())
  return store
}

async function listen(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

async function faultOf(call: Promise<unknown>): Promise<Error> {
  const fault = await call.then(
    () => undefined,
    error => error,
  )
  if (fault instanceof Error) return fault
  throw new Error('it went well')
}

function bodyOf(stream: StreamedObject | undefined): Readable {
  if (!stream) throw new Error('the object is absent')
  return stream.body
}

const OPERATIONS: [string, (store: ObjectStore) => Promise<unknown>][] = [
  ['put', store => store.put('k', BODY, TEXT)],
  ['putStream', store => store.putStream('k', Readable.from([BODY]), BODY.length, TEXT)],
  ['putIfAbsent', store => store.putIfAbsent('k', BODY, TEXT)],
  ['put of 3 MiB', store => store.put('k', Buffer.alloc(3 * MIB), TEXT)],
  ['get', store => store.get('k', 100)],
  ['getStream', store => store.getStream('k')],
  ['head', store => store.head('k')],
  ['list', store => store.list('k').next()],
  ['deleteMany', store => store.deleteMany(['k'])],
  ['copy', store => store.copy('k', 'l', TEXT)],
]

it.each(['put', 'putIfAbsent'] as const)(
  '%s signs the digest of its caller instead of hashing the body',
  async operation => {
    const stated: unknown[] = []
    const store = await storeAgainst((request, response) => {
      stated.push(request.headers['x-amz-content-sha256'])
      request.resume().once('end', () => response.end())
    })
    await store[operation]('k', BODY, { ...TEXT, sha256: 'f'.repeat(64) })
    await store[operation]('k', BODY, TEXT)
    expect(stated).toEqual(['f'.repeat(64), createHash('sha256').update(BODY).digest('hex')])
  },
)

it.each(OPERATIONS)('%s fails at its deadline when the server does not respond', async (_name, operation) => {
  const store = await storeAgainst(() => {}, SHORT_DEADLINE_MS)
  const awakeMs = countAwakeMs()
  const fault = await faultOf(operation(store))
  expect(fault).toBeInstanceOf(TransientError)
  expect(fault.message).toMatch(/no answer within 400 ms/)
  expect(awakeMs()).toBeLessThan(3_000)
})

it.each(OPERATIONS)('%s throws a TransientError when the server is unavailable', async (_name, operation) => {
  const server = createServer()
  await listen(server)
  const { port } = server.address() as AddressInfo
  await closed(server)
  await expect(operation(connectTo(port, DEADLINE_MS))).rejects.toThrow(TransientError)
})

it.each([
  ['503 SlowDown', 503, 'SlowDown', TransientError],
  ['500 without a code', 500, undefined, TransientError],
  ['403 AccessDenied', 403, 'AccessDenied', TransientError],
  ['404 NoSuchBucket', 404, 'NoSuchBucket', TransientError],
  ['400 EntityTooLarge', 400, 'EntityTooLarge', PermanentError],
  ['400 InvalidArgument', 400, 'InvalidArgument', PermanentError],
])('a put answered with %s is asked once, and classified', async (_name, status, code, expected) => {
  let asked = 0
  const store = await storeAgainst((request, response) => {
    asked++
    request.resume()
    response.writeHead(status).end(code && `<Error><Code>${code}</Code><Message>so it is</Message></Error>`)
  })
  const fault = await faultOf(store.put('k', BODY, TEXT))
  expect(fault).toBeInstanceOf(expected)
  expect(fault.message).toContain(String(status))
  if (code) expect(fault.message).toContain(code)
  expect(asked).toBe(1)
})

it('throws a PermanentError for metadata that no header can contain', async () => {
  const store = await storeAgainst((_request, response) => response.end())
  await expect(store.put('k', BODY, { ...TEXT, metadata: { name: 'a\nb' } })).rejects.toThrow(PermanentError)
})

it.each([
  ['is there now', 200, 'exists'],
  ['is not there', 404, TransientError],
])('a put if absent that met another, when the object %s', async (_name, headStatus, expected) => {
  const store = await storeAgainst((request, response) => {
    request.resume()
    if (request.method === 'HEAD') response.writeHead(headStatus).end()
    else response.writeHead(409).end('<Error><Code>ConditionalRequestConflict</Code></Error>')
  })
  const outcome = await store.putIfAbsent('k', BODY, TEXT).catch(error => error.constructor)
  expect(outcome).toBe(expected)
})

it('stores a stream that takes longer than the deadline while its bytes arrive', async () => {
  const store = await storeAgainst(async (request, response) => {
    const sent = await buffer(request)
    response.writeHead(sent.length === 40 ? 200 : 400).end()
  }, SHORT_DEADLINE_MS)
  async function* slowly() {
    for (let i = 0; i < 40; i++) {
      await new Promise(resolve => setTimeout(resolve, 20))
      yield Buffer.from('x')
    }
  }
  await store.putStream('k', slowly(), 40, TEXT)
})

it('fails at the deadline when the source of a stream sends nothing', async () => {
  const store = await storeAgainst(request => void request.resume(), SHORT_DEADLINE_MS)
  async function* never(): AsyncGenerator<Buffer> {
    yield BODY
    await new Promise(resolve => setTimeout(resolve, 2 * SHORT_DEADLINE_MS))
  }
  await expect(store.putStream('k', never(), 100, TEXT)).rejects.toThrow(/no answer within 400 ms/)
})

it('names the first object that could not be deleted, and deletes 1,000 at a time', async () => {
  const sizes: number[] = []
  const store = await storeAgainst(async (request, response) => {
    const keys = (await buffer(request)).toString().match(/<Key>/g)?.length ?? 0
    sizes.push(keys)
    const error = '<Error><Key>k7</Key><Code>InternalError</Code><Message>not now</Message></Error>'
    response.end(`<DeleteResult>${keys < 1_000 ? error : ''}</DeleteResult>`)
  })
  const keys = Array.from({ length: 2_500 }, (_, i) => `k${i}`)
  const fault = await faultOf(store.deleteMany(keys))
  expect(fault).toBeInstanceOf(TransientError)
  expect(fault.message).toContain('1 of 500 objects were not deleted, first k7: InternalError: not now')
  expect(sizes).toEqual([1_000, 1_000, 500])
})

it.each(['', '<NextContinuationToken>same</NextContinuationToken>'])(
  'does not list for ever when the server says %j for the next page',
  async token => {
    const page = `<ListBucketResult><IsTruncated>true</IsTruncated>${token}</ListBucketResult>`
    const store = await storeAgainst((_request, response) => void response.end(page))
    await expect(async () => {
      for await (const _page of store.list('k'));
    }).rejects.toThrow(TransientError)
  },
)

/** Sends the head of a response of 100 bytes, then one byte every `everyMs`. */
function trickle(everyMs: number, bytes: number): RequestListener {
  return (_request, response) => {
    response.writeHead(200, { 'content-length': 100, etag: '"e"' })
    let sent = 0
    const timer = setInterval(() => {
      if (sent++ < bytes) response.write('x')
    }, everyMs)
    response.once('close', () => clearInterval(timer))
  }
}

it('fails at the deadline when a whole object arrives too slowly', async () => {
  const store = await storeAgainst(trickle(20, 100), SHORT_DEADLINE_MS)
  await expect(store.get('k', 100)).rejects.toThrow(TransientError)
})

it('reads a stream for longer than the deadline while bytes arrive', async () => {
  const store = await storeAgainst(trickle(10, 100), SHORT_DEADLINE_MS)
  const startedAt = performance.now()
  const stream = await store.getStream('k')
  expect((await buffer(bodyOf(stream))).length).toBe(100)
  expect(performance.now() - startedAt).toBeGreaterThan(SHORT_DEADLINE_MS)
})

it('fails when a stream stops sending bytes', async () => {
  const store = await storeAgainst(trickle(1, 10), SHORT_DEADLINE_MS)
  const stream = await store.getStream('k')
  const fault = await faultOf(buffer(bodyOf(stream)))
  expect(fault).toBeInstanceOf(TransientError)
  expect(fault.message).toMatch(/the store sent nothing for 400 ms/)
})

it('throws a TransientError when a body ends early, and never returns a shorter object', async () => {
  const store = await storeAgainst((_request, response) => {
    response.writeHead(200, { 'content-length': 100, etag: '"e"' })
    response.write('x'.repeat(50), () => response.destroy())
  })
  await expect(store.get('k', 100)).rejects.toThrow(TransientError)
  const stream = await store.getStream('k')
  await expect(buffer(bodyOf(stream))).rejects.toThrow(TransientError)
})

it('reads the rules that apply to all objects of a prefix', async () => {
  const rule = (text: string, status = 'Enabled') =>
    `<Rule><Status>${status}</Status>${text}<Expiration><Days>7</Days></Expiration></Rule>`
  const rules = [
    rule('<Filter><Prefix>replays/</Prefix></Filter>'),
    rule('<Prefix>before/</Prefix>'),
    rule('<Filter></Filter>'),
    rule('<Filter><Prefix>off/</Prefix></Filter>', 'Disabled'),
    rule('<Filter><And><Prefix>tagged/</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>'),
    '<Rule><Status>Enabled</Status><Filter><Prefix>a/</Prefix></Filter></Rule>',
  ]
  const store = await storeAgainst((request, response) => {
    expect(request.url).toContain('lifecycle')
    response.end(`<LifecycleConfiguration>${rules.join('')}</LifecycleConfiguration>`)
  })
  expect(await store.expirations()).toEqual(['replays/', 'before/', ''].map(prefix => ({ prefix, days: 7 })))
})

it.each([
  ['NoSuchLifecycleConfiguration', 404, []],
  ['AccessDenied', 403, undefined],
  ['NotImplemented', 501, undefined],
])('has no rules of a bucket without them, and does not know them with %s', async (code, status, expected) => {
  const store = await storeAgainst((_, response) => {
    response.writeHead(status, { 'content-type': 'application/xml' })
    response.end(`<Error><Code>${code}</Code><Message>no</Message></Error>`)
  })
  expect(await store.expirations()).toEqual(expected)
})
