import { randomBytes, randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { CompletionRecord, SourceMapJob, Verdict } from '../../../schemas/queues/source-maps.ts'
import { manifestSchema } from '../../../schemas/records/manifest.ts'
import { Budget } from '../../../shared/concurrency/budget.ts'
import { createReleaseStore, type ReleaseStore } from '../../../shared/directory/release-store.ts'
import { manifestPrefix, partKey, sourceMapKey, stagingKey } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore, type ObjectStore } from '../../../shared/object-store/object-store.ts'
import { decodePayload, encodePayload } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { uploadKeys, verdictKey } from '../../../shared/queue/upload-keys.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import { RedisPayloadStore } from '../../../workers/queue/payload-store.ts'
import { storeCompletions } from '../../../workers/source-maps/store-completions.ts'
import { storeSourceMaps } from '../../../workers/source-maps/store-source-maps.ts'
import { digestOf, entryOf, type FileEntry, mapOf, type NamedMap } from '../../support/clients/release-client.ts'
import { type FaultAt, faultAt } from '../../support/services/fault-at.ts'

const services = inject('services')
const redisUrl = `${services.redisUrl}/10`
const MIB = 1024 * 1024
/** Of this run alone: the object store is shared by all tests. */
const workspaceId = `ws_${randomBytes(6).toString('hex')}`
const surfaceId = 'srf_1'
const logger = pino({ level: 'silent' })

let redis: Redis
let objects: ObjectStore
let releases: ReleaseStore

beforeAll(async () => {
  redis = connectConsumer(redisUrl, logger)
  await redis.flushdb()
  objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  releases = createReleaseStore(redis)
})

afterAll(() => {
  objects?.close()
  redis?.disconnect()
})

const NEVER = faultAt(0, 'before')
const keysOf = (slug: string) => uploadKeys({ workspaceId, surfaceId, slug })
const placeOf = (slug: string, path: string) => ({ workspaceId, surfaceId, slug, path })
const named = (path: string, bytes = 200): NamedMap => ({ path, bytes: mapOf(path + randomUUID(), bytes) })

async function register(): Promise<string> {
  const slug = `rel_${randomBytes(13).toString('hex')}`
  const createdAt = new Date().toISOString()
  const known = { version: 1, commit: null, metadata: null } as const
  await releases.register({ ...known, slug, workspaceId, surfaceId, name: `1.0-${slug}`, createdAt })
  return slug
}

async function enqueue(queue: QueueName, attributes: object, body: Buffer, of = surfaceId): Promise<string> {
  const jobId = randomUUID()
  const frame = { workspaceId, surfaceId: of, receivedAtMs: Date.now(), contentEncoding: 'identity' } as const
  const payload = encodePayload([
    { ...frame, contentType: 'application/json', attributes: JSON.stringify(attributes), body },
  ])
  const keys = queueKeys(queue)
  await redis.set(keys.payload(jobId), payload)
  await redis.set(keys.lock(jobId), 'token')
  return jobId
}

const bodyOf = (files: readonly FileEntry[]) => Buffer.from(JSON.stringify({ files, sourceFileCount: files.length }))

/** As the edge does it. */
async function accept(slug: string, body: Buffer, sequence: number, of = surfaceId) {
  const [attempt, digest] = [randomUUID(), digestOf(body)]
  const record = { attempt, sequence } satisfies CompletionRecord
  const recordKey = uploadKeys({ workspaceId, surfaceId: of, slug }).completion(digest)
  await redis.set(recordKey, JSON.stringify(record))
  const jobId = await enqueue('completions', { slug, attempt, digest }, body, of)
  return { jobId, attempt, recordKey }
}

async function putParts(slug: string, { path, bytes }: NamedMap, partBytes = 50): Promise<void> {
  for (let at = 0; at < bytes.length; at += partBytes) {
    const part = at / partBytes
    const piece = bytes.subarray(at, at + partBytes)
    await redis.hset(keysOf(slug).parts(path), { [part]: `${digestOf(piece)}:${piece.length}`, [`stored:${part}`]: 1 })
    await objects.put(partKey(placeOf(slug, path), part), piece, { contentType: 'application/octet-stream' })
  }
}

async function stage(slug: string, { path, bytes }: NamedMap): Promise<void> {
  const declared = { size: bytes.length, hash: digestOf(bytes) }
  const key = stagingKey(placeOf(slug, path), declared)
  await redis.hset(keysOf(slug).signed, path, JSON.stringify({ ...declared, stagingKey: key }))
  await objects.put(key, bytes, { contentType: 'application/json' })
}

const COUNTED = ['head', 'get', 'getStream', 'put', 'putStream', 'deleteMany'] as const

function depsOf(queue: QueueName, fault: FaultAt, store: Partial<ObjectStore> = {}) {
  const wrappedRedis = fault.wrap(redis, ['eval', 'get', 'hget', 'hmget', 'hset', 'expire'])
  return {
    redis: wrappedRedis,
    objects: fault.wrap({ ...objects, ...store }, COUNTED),
    releases: fault.wrap(releases, ['release', 'manifest', 'replaceManifest', 'storedMaps', 'addStoredMaps']),
    store: fault.wrap(new RedisPayloadStore(redis, queue), ['look', 'holdsLocks', 'finishJob']),
    held: new Budget(64 * MIB),
    addJobs: async () => {},
    now: Date.now,
    logger,
    stopping: fault.signal,
  }
}

const runCompletion = (jobId: string, fault = NEVER, store: Partial<ObjectStore> = {}) =>
  storeCompletions(depsOf('completions', fault, store), { jobId, token: 'token' }, 1_000)
const runUpload = (jobId: string, fault = NEVER, store: Partial<ObjectStore> = {}) =>
  storeSourceMaps(depsOf('source-maps', fault, store), { jobId, token: 'token' }, 1_000)

async function verdictOf(attempt: string): Promise<Verdict | undefined> {
  const text = await redis.get(verdictKey(attempt))
  return text === null ? undefined : JSON.parse(text)
}

async function listed(prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const page of objects.list(prefix)) keys.push(...page.map(({ key }) => key))
  return keys
}

const movedTo = (queue: QueueName, jobId: string) => redis.getBuffer(queueKeys(queue).payload(jobId))

const AT_ONCE = 8

/** Runs the work with a death at its first call of a store, then its second, and so on, until it gets through. */
async function withDeathsEverywhere(
  moment: 'before' | 'after',
  work: (fault: FaultAt) => Promise<void>,
): Promise<number> {
  for (let first = 1; ; first += AT_ONCE) {
    const faults = Array.from({ length: AT_ONCE }, (_, i) => faultAt(first + i, moment))
    await Promise.all(faults.map(work))
    const died = faults.filter(fault => fault.hasCome).length
    if (died < AT_ONCE) return first - 1 + died
  }
}

describe.each(['before', 'after'] as const)('a worker that dies %s any of its steps', moment => {
  it('leaves a completion to the next, which comes to the same end', async () => {
    const deaths = await withDeathsEverywhere(moment, async fault => {
      const slug = await register()
      const old = named('old.map')
      await putParts(slug, old)
      const before = await accept(slug, bodyOf([entryOf(old)]), 5)
      await runCompletion(before.jobId)
      expect(await redis.hget(keysOf(slug).parts('old.map'), 'sealed')).toBe('5')

      const maps = [named('staged.map'), named('parts.map'), named('single.map')] as const
      await stage(slug, maps[0])
      await putParts(slug, maps[1])
      const single = digestOf(maps[2].bytes)
      await objects.put(sourceMapKey(workspaceId, single), maps[2].bytes, { contentType: 'application/json' })
      await redis.hset(keysOf(slug).singles, 'single.map', `${single}:${maps[2].bytes.length}`)
      const files = maps.map(map => entryOf(map))
      const { jobId, attempt, recordKey } = await accept(slug, bodyOf(files), 7)
      await runCompletion(jobId, fault).catch(error => {
        if (!fault.hasCome) throw error
      })
      await runCompletion(jobId)

      const pointer = await releases.manifest(workspaceId, slug)
      expect(pointer).toMatchObject({ sequence: 7, sourceMapCount: 3, sourceFileCount: 3 })
      const object = await objects.get(pointer?.objectKey as string, MIB)
      expect(manifestSchema.parse(JSON.parse(String(object?.body))).files).toEqual(
        maps.map(({ bytes }, i) => ({ ...files[i], sha256: digestOf(bytes), size: bytes.length, verified: true })),
      )
      for (const { bytes } of maps) {
        const stored = await objects.get(sourceMapKey(workspaceId, digestOf(bytes)), MIB)
        expect(stored?.body.equals(bytes)).toBe(true)
      }
      expect(await verdictOf(attempt)).toEqual({ ok: true, value: { ok: true, fileCount: 3 } })
      expect(JSON.parse((await redis.get(recordKey)) as string)).toEqual({ attempt, sequence: 7, fileCount: 3 })
      expect(await redis.hget(keysOf(slug).parts('parts.map'), 'sealed')).toBe('7')
      expect(await redis.hget(keysOf(slug).parts('old.map'), 'sealed')).toBeNull()
      expect(await redis.ttl(keysOf(slug).parts('old.map'))).toBeGreaterThan(0)
      expect(await listed(`uploads/${workspaceId}/${surfaceId}/${slug}/`)).toEqual([])
      expect(await listed(manifestPrefix(workspaceId, slug))).toHaveLength(2)
      expect(await movedTo('completions', jobId)).toBeNull()
      const passedOn = decodePayload((await movedTo('symbolication', `release-${jobId}`)) as Buffer)
      expect(passedOn.map(frame => JSON.parse(String(frame.body)).slug)).toEqual([slug])
    })
    expect(deaths).toBeGreaterThan(25)
  })

  it('leaves a part to the next', async () => {
    const deaths = await withDeathsEverywhere(moment, async fault => {
      const slug = await register()
      const body = randomBytes(100)
      const parts = keysOf(slug).parts('a.map')
      await redis.hset(parts, '3', `${digestOf(body)}:100`, 'bytes', 100)
      const job = { kind: 'part', slug, path: 'a.map', part: 3, sha256: digestOf(body) } satisfies SourceMapJob
      const jobId = await enqueue('source-maps', job, body)
      await runUpload(jobId, fault).catch(error => {
        if (!fault.hasCome) throw error
      })
      await runUpload(jobId)
      expect((await objects.get(partKey(placeOf(slug, 'a.map'), 3), 100))?.body.equals(body)).toBe(true)
      expect(await redis.hgetall(parts)).toEqual({ 3: `${digestOf(body)}:100`, 'stored:3': '1', bytes: '100' })
      expect(await movedTo('source-maps', jobId)).toBeNull()
    })
    expect(deaths).toBeGreaterThan(4)
  })

  it('leaves a single upload to the next', async () => {
    const deaths = await withDeathsEverywhere(moment, async fault => {
      const slug = await register()
      const { path, bytes } = named('a.map')
      const attempt = randomUUID()
      const jobId = await enqueue('source-maps', { kind: 'single', slug, path, attempt } satisfies SourceMapJob, bytes)
      await runUpload(jobId, fault).catch(error => {
        if (!fault.hasCome) throw error
      })
      await runUpload(jobId)
      const objectKey = sourceMapKey(workspaceId, digestOf(bytes))
      expect((await objects.get(objectKey, MIB))?.body.equals(bytes)).toBe(true)
      expect(await redis.hget(keysOf(slug).singles, path)).toBe(`${digestOf(bytes)}:${bytes.length}`)
      expect(await redis.ttl(keysOf(slug).singles)).toBeGreaterThan(0)
      expect(await verdictOf(attempt)).toEqual({ ok: true, value: { objectKey } })
    })
    expect(deaths).toBeGreaterThan(5)
  })
})

describe('a part', () => {
  const BODY = Buffer.from('a part')
  const CLAIM = `${digestOf(BODY)}:${BODY.length}`

  async function enqueuePart(claims: Record<string, string | number>) {
    const slug = await register()
    const parts = keysOf(slug).parts('a.map')
    if (Object.keys(claims).length > 0) await redis.hset(parts, claims)
    const job = { kind: 'part', slug, path: 'a.map', part: 1, sha256: digestOf(BODY) } satisfies SourceMapJob
    return { slug, parts, jobId: await enqueue('source-maps', job, BODY) }
  }

  async function deadLetterOf(jobId: string) {
    const [letter] = decodePayload((await movedTo('dead-letters', `dead-${jobId}`)) as Buffer)
    return { body: String(letter?.body), ...JSON.parse(letter?.attributes ?? '{}') }
  }

  it('that the object store never takes is dead-lettered, and its number is free again', async () => {
    const { parts, jobId } = await enqueuePart({ 0: CLAIM, 1: CLAIM, 'stored:0': 1, bytes: 12 })
    const put = async () => {
      throw new PermanentError('S3 put: EntityTooLarge')
    }
    await runUpload(jobId, NEVER, { put })
    expect(await redis.hgetall(parts)).toEqual({ 0: CLAIM, 'stored:0': '1', bytes: '6' })
    const reason = expect.stringMatching(/^refused_by_object_store: S3 put: EntityTooLarge/)
    expect(await deadLetterOf(jobId)).toMatchObject({ queue: 'source-maps', reason, body: 'a part' })
  })

  it('whose claim has run out is kept, and does not claim its number again', async () => {
    const { slug, parts, jobId } = await enqueuePart({})
    await runUpload(jobId)
    expect(await objects.head(partKey(placeOf(slug, 'a.map'), 1))).toBeDefined()
    expect(await redis.exists(parts)).toBe(0)
  })

  it('whose number others have claimed meanwhile does not replace their bytes', async () => {
    const other = `${digestOf(Buffer.from('other'))}:5`
    const { slug, parts, jobId } = await enqueuePart({ 1: other })
    await runUpload(jobId)
    expect(await objects.head(partKey(placeOf(slug, 'a.map'), 1))).toBeUndefined()
    expect(await redis.hgetall(parts)).toEqual({ 1: other })
    expect(await deadLetterOf(jobId)).toMatchObject({ reason: expect.stringMatching(/^claim_replaced/) })
  })

  it('waits where it stands while the object store is away', async () => {
    const { slug, jobId } = await enqueuePart({ 1: CLAIM })
    let away = 2
    const put: ObjectStore['put'] = async (...args) => {
      if (away-- > 0) throw new TransientError('S3 is away')
      await objects.put(...args)
    }
    await runUpload(jobId, NEVER, { put })
    expect(await objects.head(partKey(placeOf(slug, 'a.map'), 1))).toBeDefined()
  })
})

describe('a completion', () => {
  it('waits for parts that were acknowledged and are not stored yet', async () => {
    const slug = await register()
    const map = named('a.map')
    await putParts(slug, map)
    await redis.hdel(keysOf(slug).parts('a.map'), 'stored:2')
    const { jobId, attempt } = await accept(slug, bodyOf([entryOf(map)]), 1)
    await expect(runCompletion(jobId)).rejects.toThrow(TransientError)
    expect(await verdictOf(attempt)).toBeUndefined()
    await redis.hset(keysOf(slug).parts('a.map'), 'stored:2', 1)
    await runCompletion(jobId)
    expect(await verdictOf(attempt)).toMatchObject({ ok: true })
  })

  it('of an unknown release, or of one of another surface, is refused', async () => {
    const unknown = await accept('rel_unknown', bodyOf([]), 1)
    await runCompletion(unknown.jobId)
    expect(await verdictOf(unknown.attempt)).toMatchObject({ ok: false, code: 'RELEASE_NOT_FOUND' })
    const others = await accept(await register(), bodyOf([]), 1, 'srf_other')
    await runCompletion(others.jobId)
    expect(await verdictOf(others.attempt)).toMatchObject({ ok: false, code: 'AUTH_AK_SCOPE_MISMATCH' })
    for (const { recordKey } of [unknown, others]) expect(await redis.exists(recordKey)).toBe(0)
  })

  it('that is older than the one that holds is answered, and changes nothing', async () => {
    const slug = await register()
    const [first, later] = [named('a.map'), named('b.map')]
    await stage(slug, first)
    await stage(slug, later)
    const older = await accept(slug, bodyOf([entryOf(first), entryOf(named('never-sent.map'))]), 10)
    const newer = await accept(slug, bodyOf([entryOf(later)]), 11)
    await runCompletion(newer.jobId)
    const held = await releases.manifest(workspaceId, slug)
    await runCompletion(older.jobId)
    expect(await releases.manifest(workspaceId, slug)).toEqual(held)
    expect(await verdictOf(older.attempt)).toEqual({ ok: true, value: { ok: true, fileCount: 2 } })
    expect(await movedTo('symbolication', `release-${older.jobId}`)).toBeNull()
    expect(await listed(manifestPrefix(workspaceId, slug))).toEqual([held?.objectKey])
  })

  it('that another overtakes before its manifest holds, leaves none behind', async () => {
    const slug = await register()
    const maps = [named('a.map'), named('b.map')] as const
    for (const map of maps) await putParts(slug, map)
    const older = await accept(slug, bodyOf([entryOf(maps[0])]), 10)
    const newer = await accept(slug, bodyOf(maps.map(map => entryOf(map))), 11)
    const put: ObjectStore['put'] = async (key, ...rest) => {
      if (key.startsWith('releases/')) await runCompletion(newer.jobId)
      await objects.put(key, ...rest)
    }
    await runCompletion(older.jobId, NEVER, { put })
    const held = await releases.manifest(workspaceId, slug)
    expect(held).toMatchObject({ sequence: 11, sourceMapCount: 2 })
    expect(await verdictOf(older.attempt)).toMatchObject({ ok: true, value: { fileCount: 1 } })
    expect(await listed(manifestPrefix(workspaceId, slug))).toEqual([held?.objectKey])
  })

  it('finds what another made of the parts that it was about to read', async () => {
    const slug = await register()
    const map = named('a.map')
    await putParts(slug, map)
    const first = await accept(slug, bodyOf([entryOf(map)]), 10)
    const second = await accept(slug, bodyOf([entryOf(map, { debugId: 'x' })]), 11)
    let reads = 0
    const getStream: ObjectStore['getStream'] = async (...args) => {
      if (++reads === 3) await runCompletion(first.jobId)
      return objects.getStream(...args)
    }
    await runCompletion(second.jobId, NEVER, { getStream })
    expect(await verdictOf(first.attempt)).toMatchObject({ ok: true })
    expect(await verdictOf(second.attempt)).toMatchObject({ ok: true })
    expect(await releases.manifest(workspaceId, slug)).toMatchObject({ sequence: 11 })
    expect(await redis.hget(keysOf(slug).parts('a.map'), 'sealed')).toBe('11')
  })

  it('never stores bytes that were replaced after they were verified', async () => {
    const slug = await register()
    const map = named('a.map', 2 * MIB)
    await stage(slug, map)
    const { jobId, attempt } = await accept(slug, bodyOf([entryOf(map)]), 1)
    let reads = 0
    const getStream: ObjectStore['getStream'] = async (key, range) => {
      if (++reads === 2) await objects.put(key, mapOf('another', 2 * MIB), { contentType: 'application/json' })
      return objects.getStream(key, range)
    }
    await runCompletion(jobId, NEVER, { getStream })
    expect(await verdictOf(attempt)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/does not match its hash/),
    })
    expect(await objects.head(sourceMapKey(workspaceId, digestOf(map.bytes)))).toBeUndefined()
    expect(await releases.storedMaps(workspaceId, [digestOf(map.bytes)])).toEqual(new Set())
  })

  it('that the object store never takes is refused, and does not come again', async () => {
    const slug = await register()
    const map = named('a.map')
    await stage(slug, map)
    const { jobId, attempt, recordKey } = await accept(slug, bodyOf([entryOf(map)]), 1)
    const put = async () => {
      throw new PermanentError('S3 put: InvalidRequest')
    }
    await runCompletion(jobId, NEVER, { put })
    expect(await verdictOf(attempt)).toMatchObject({ ok: false, code: 'INTERNAL' })
    expect(await redis.exists(recordKey)).toBe(0)
    expect(await movedTo('completions', jobId)).toBeNull()
  })

  it('whose record is of another attempt, or gone, is over', async () => {
    const slug = await register()
    const { jobId, attempt, recordKey } = await accept(slug, bodyOf([]), 1)
    await redis.set(recordKey, JSON.stringify({ attempt: 'another', sequence: 2 }))
    await runCompletion(jobId)
    expect(await verdictOf(attempt)).toBeUndefined()
    expect(await movedTo('completions', jobId)).toBeNull()
    expect(await releases.manifest(workspaceId, slug)).toBeUndefined()
  })
})
