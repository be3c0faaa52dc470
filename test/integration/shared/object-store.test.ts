import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { KIB, MIB } from '../../../schemas/units.ts'
import { objectKeyFault } from '../../../shared/object-store/checked-key.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ByteRange, ListedObject, ObjectStore } from '../../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import type { S3Access } from '../../support/services/services.ts'

const TEXT = { contentType: 'text/plain' }
const provided = inject('s3')

/** Contract of the object store on every S3 server: the embedded one in `npm test`, the gateway of Ceph in `npm run test:ceph`. */
describe.skipIf(provided === null)('the object store', () => {
  const access = provided as S3Access
  let store: ObjectStore
  beforeAll(() => {
    store = createObjectStore({ ...access, requestTimeoutMs: 10_000 })
  })
  afterAll(() => store?.close())

  it.each([
    ['no byte', 0],
    ['one byte', 1],
    ['5 MiB', 5 * MIB],
  ])('returns %s as it was put, as a whole and as a stream', async (_name, size) => {
    const key = `${randomUUID()}/whole`
    const body = randomBytes(size)
    const metadata = { 'window-id': 'a b', count: '3' }
    await store.put(key, body, { contentType: 'application/gzip', metadata })

    const head = await store.head(key)
    expect(head).toEqual({ size, contentType: 'application/gzip', metadata, etag: expect.stringMatching(/^[^"]+$/) })
    const { body: whole, ...rest } = (await store.get(key, size)) ?? {}
    expect(rest).toEqual(head)
    expect(whole?.equals(body)).toBe(true)
    const { body: stream, ...streamed } = (await store.getStream(key)) ?? {}
    expect(streamed).toEqual(head)
    expect(stream && (await buffer(stream)).equals(body)).toBe(true)
  })

  it('replaces an object together with its etag', async () => {
    const key = `${randomUUID()}/replaced`
    await store.put(key, Buffer.from('first'), { ...TEXT, metadata: { n: '1' } })
    const first = await store.head(key)
    await store.put(key, Buffer.from('other'), TEXT)
    expect(await store.get(key, 100)).toMatchObject({ body: Buffer.from('other'), metadata: {} })
    expect((await store.head(key))?.etag).not.toBe(first?.etag)
  })

  it('returns undefined for an absent object', async () => {
    const key = `${randomUUID()}/absent`
    expect(await store.head(key)).toBeUndefined()
    expect(await store.get(key, 100)).toBeUndefined()
    expect(await store.getStream(key)).toBeUndefined()
    expect(await store.getStream(key, { start: 0, end: 1 })).toBeUndefined()
    expect(await store.copy(key, `${key}-copy`, TEXT)).toBe('absent')
    expect(await listAll(store, key)).toEqual([])
    await store.deleteMany([key])
  })

  it('reports a missing bucket as an error, not as an absent object', async () => {
    const elsewhere = createObjectStore({ ...access, bucket: `no-${randomUUID()}`, requestTimeoutMs: 10_000 })
    const calls = [
      elsewhere.head('a'),
      elsewhere.get('a', 100),
      elsewhere.getStream('a'),
      elsewhere.put('a', Buffer.from('a'), TEXT),
      elsewhere.putIfAbsent('a', Buffer.from('a'), TEXT),
      elsewhere.putStream('a', Readable.from([Buffer.from('a')]), 1, TEXT),
      elsewhere.copy('a', 'b', TEXT),
      elsewhere.deleteMany(['a']),
      listAll(elsewhere, ''),
    ]
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({ status: 'rejected', reason: expect.any(TransientError) })
    }
    elsewhere.close()
  })

  it('refuses to read more than the caller allows', async () => {
    const key = `${randomUUID()}/large`
    await store.put(key, randomBytes(MIB), TEXT)
    await expect(store.get(key, MIB - 1)).rejects.toThrow(PermanentError)
    expect((await store.get(key, MIB))?.size).toBe(MIB)
  })

  it.each<[string, ByteRange]>([
    ['the first byte', { start: 0, end: 1 }],
    ['the last byte', { start: 999, end: 1_000 }],
    ['the middle', { start: 400, end: 600 }],
    ['all', { start: 0, end: 1_000 }],
    ['from the middle on', { start: 500 }],
    ['more than there is', { start: 990, end: 5_000 }],
  ])('reads %s of an object', async (_name, range) => {
    const key = `${randomUUID()}/range`
    const body = randomBytes(1_000)
    await store.put(key, body, TEXT)
    const part = await store.getStream(key, range)
    expect(part).toMatchObject({ size: 1_000, contentType: 'text/plain' })
    expect(part && (await buffer(part.body)).equals(body.subarray(range.start, range.end))).toBe(true)
  })

  it.each([
    ['behind the end', 10, { start: 10 }],
    ['of nothing', 10, { start: 5, end: 5 }],
    ['that runs backwards', 10, { start: 5, end: 2 }],
    ['of an empty object', 0, { start: 0, end: 1 }],
  ])('refuses a range %s', async (_name, size, range) => {
    const key = `${randomUUID()}/range`
    await store.put(key, Buffer.alloc(size), TEXT)
    await expect(store.getStream(key, range)).rejects.toThrow(PermanentError)
  })

  it('stores one of 20 conditional puts of an absent key, and returns which', async () => {
    const key = `${randomUUID()}/raced`
    const bodies = Array.from({ length: 20 }, (_, i) => Buffer.from(`body ${i}`))
    const answers = await Promise.all(bodies.map(body => store.putIfAbsent(key, body, TEXT)))
    expect(answers.filter(answer => answer === 'stored')).toHaveLength(1)
    expect((await store.get(key, 100))?.body).toEqual(bodies[answers.indexOf('stored')])
    expect(await store.putIfAbsent(key, Buffer.from('late'), TEXT)).toBe('exists')
    await store.deleteMany([key])
    expect(await store.putIfAbsent(key, Buffer.from('again'), TEXT)).toBe('stored')
  })

  it('lists more than a page in the order of keys, and deletes more than a request takes', async () => {
    const prefix = randomUUID()
    const startedAtMs = Date.now()
    const keys = Array.from({ length: 1_050 }, (_, i) => `${prefix}/${String(i).padStart(4, '0')}`)
    await inParallel(keys, 32, key => store.put(key, Buffer.from(key.slice(-2)), TEXT))
    await store.put(`${prefix}-beside`, Buffer.from('1'), TEXT)

    const pages: (readonly ListedObject[])[] = []
    for await (const page of store.list(`${prefix}/`)) pages.push(page)
    expect(pages.map(page => page.length)).toEqual([1_000, 50])
    const lastModifiedMs = expect.any(Number)
    const etags = keys.map(key => createHash('md5').update(key.slice(-2)).digest('hex'))
    expect(pages.flat()).toEqual(keys.map((key, i) => ({ key, size: 2, etag: etags[i], lastModifiedMs })))
    // The store may state whole seconds.
    const times = pages.flat().map(object => object.lastModifiedMs)
    expect(Math.min(...times)).toBeGreaterThan(startedAtMs - 1_000)
    expect(Math.max(...times)).toBeLessThan(Date.now() + 1_000)

    const absent = Array.from({ length: 450 }, (_, i) => `${prefix}/absent-${i}`)
    await store.deleteMany([...keys, ...absent])
    expect(await listAll(store, prefix)).toEqual([
      { key: `${prefix}-beside`, size: 1, etag: expect.any(String), lastModifiedMs },
    ])
  })

  it('copies within the bucket, with new metadata', async () => {
    const [from, to] = [`${randomUUID()}/staged +%2F/ü`, `${randomUUID()}/kept +%2F/ü`]
    const body = randomBytes(MIB)
    await store.put(from, body, { ...TEXT, metadata: { staged: 'yes' } })
    expect(await store.copy(from, to, { contentType: 'application/json', metadata: { kept: 'yes' } })).toBe('copied')
    const copy = await store.get(to, MIB)
    expect(copy).toMatchObject({ contentType: 'application/json', metadata: { kept: 'yes' } })
    expect(copy?.body.equals(body)).toBe(true)
    expect(await store.head(from)).toMatchObject({ contentType: 'text/plain', metadata: { staged: 'yes' } })
  })

  it.each([
    ['no byte', 0, 1],
    ['one byte', 1, 1],
    ['20 MiB', 20 * MIB, 64 * KIB],
    ['20 MiB in large pieces', 20 * MIB, 7 * MIB],
  ])('stores a stream of %s', async (_name, size, pieceBytes) => {
    const key = `${randomUUID()}/streamed`
    const body = randomBytes(size)
    await store.putStream(key, piecesOf(body, pieceBytes), size, {
      contentType: 'application/json',
      metadata: { a: 'b' },
    })
    const stored = await store.get(key, size)
    expect(stored).toMatchObject({ size, contentType: 'application/json', metadata: { a: 'b' } })
    expect(stored?.body.equals(body)).toBe(true)
  })

  it.each<[string, number, number]>([
    ['breaks off before its last byte', 0, MIB + 1],
    ['ends early', MIB, MIB + 1],
    ['is longer than was said', MIB, MIB - 1],
  ])('keeps the previous object when a stream %s', async (_name, whole, size) => {
    const key = `${randomUUID()}/kept`
    await store.put(key, Buffer.from('before'), TEXT)
    async function* source() {
      yield* piecesOf(randomBytes(MIB), 64 * KIB)
      if (whole === 0) throw new PermanentError('the source broke off')
    }
    const message = whole === 0 ? 'the source broke off' : /the source has/
    await expect(store.putStream(key, source(), size, TEXT)).rejects.toThrow(message)
    expect((await store.get(key, 10))?.body.toString()).toBe('before')
    await store.put(key, Buffer.from('after'), TEXT)
    expect((await store.get(key, 10))?.body.toString()).toBe('after')
  })

  it.each([
    ...[
      'a b',
      'a+b',
      'a%20b',
      'a%2520b',
      '%2E%2E',
      '%2e%2e/x',
      '...',
      '.hidden',
      'x//y',
      'ü/ü',
      '🚰',
      "!*'()",
      '?a=b&c#d',
      '\\',
      '~',
    ],
  ])('keeps the key %j unchanged', async name => {
    await expectKept(store, `${randomUUID()}/${name}`)
  })

  it('keeps any allowed key unchanged', async () => {
    const character = fc.oneof(
      fc.constantFrom(...' +%&?#=;:@,~^`|<>"\\\'()*!$[]{}._-/'),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
    )
    const name = fc
      .array(character, { minLength: 1, maxLength: 20 })
      .map(characters => characters.join(''))
      .filter(text => objectKeyFault(`x/${text}`) === undefined)
    const prefix = randomUUID()
    await fc.assert(
      fc.asyncProperty(name, text => expectKept(store, `${prefix}/${text}`)),
      { numRuns: 30 },
    )
  })
})

/** Expects that an object is stored under exactly this key: found, listed and deleted by it. */
async function expectKept(store: ObjectStore, key: string): Promise<void> {
  await store.put(key, Buffer.from(key), TEXT)
  expect((await store.get(key, 1_000))?.body.toString()).toBe(key)
  expect((await listAll(store, key)).map(object => object.key)).toContain(key)
  await store.deleteMany([key])
  expect(await store.head(key)).toBeUndefined()
}

async function* piecesOf(body: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes)
}

async function listAll(store: ObjectStore, prefix: string): Promise<ListedObject[]> {
  const all: ListedObject[] = []
  for await (const page of store.list(prefix)) all.push(...page)
  return all
}

async function inParallel<T>(items: readonly T[], width: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of rest) await work(item)
    }),
  )
}
