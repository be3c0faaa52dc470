import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { SourceMapJob } from '../../../../schemas/queues/source-maps.ts'
import { partKey } from '../../../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../../../shared/object-store/types.ts'
import { decodePayload } from '../../../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../../../shared/runtime/errors.ts'
import { digestOf, mapOf } from '../../../support/clients/release-client.ts'
import {
  enqueue,
  freed,
  keysOf,
  movedTo,
  NEVER,
  objects,
  placeOf,
  redis,
  register,
  runUpload,
} from './upload-jobs-fixture.ts'

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

  it('that the object store permanently refuses is dead-lettered, and its number is free again', async () => {
    const { parts, jobId } = await enqueuePart({ 0: CLAIM, 1: CLAIM, 'stored:0': 1, bytes: 12 })
    const put = async () => {
      throw new PermanentError('S3 put: EntityTooLarge')
    }
    await runUpload(jobId, NEVER, { put })
    expect(await redis.hgetall(parts)).toEqual({ 0: CLAIM, 'stored:0': '1', bytes: '6' })
    const reason = expect.stringMatching(/^refused_by_object_store: S3 put: EntityTooLarge/)
    expect(await deadLetterOf(jobId)).toMatchObject({ queue: 'source-maps', reason, body: 'a part' })
  })

  it('lets the claims of its map expire once no part of it waits (settle-part.lua)', async () => {
    const waits = { 'waits:0': 1, 'waits:1': 1, waiting: 2 }
    const { parts, jobId } = await enqueuePart({ 0: CLAIM, 1: CLAIM, ...waits, bytes: 12 })
    await runUpload(jobId)
    expect(await redis.hgetall(parts)).toMatchObject({ 'waits:0': '1', waiting: '1', 'stored:1': expect.any(String) })
    expect(await redis.ttl(parts)).toBe(-1)
    await redis.del(parts)
    const last = await enqueuePart({ 1: CLAIM, 'waits:1': 1, waiting: 1, bytes: 6 })
    await runUpload(last.jobId)
    expect(await redis.ttl(last.parts)).toBeGreaterThan(86_000)
  })

  it('whose claim was removed with its release is kept, and does not claim its number again', async () => {
    const { slug, parts, jobId } = await enqueuePart({})
    await runUpload(jobId)
    expect(await objects.head(partKey(placeOf(slug, 'a.map'), 1))).toBeDefined()
    expect(await redis.exists(parts)).toBe(0)
  })

  it('whose number was claimed by another part meanwhile does not replace its bytes', async () => {
    const other = `${digestOf(Buffer.from('other'))}:5`
    const { slug, parts, jobId } = await enqueuePart({ 1: other })
    await runUpload(jobId)
    expect(await objects.head(partKey(placeOf(slug, 'a.map'), 1))).toBeUndefined()
    expect(await redis.hgetall(parts)).toEqual({ 1: other })
    expect(await deadLetterOf(jobId)).toMatchObject({ reason: expect.stringMatching(/^claim_replaced/) })
  })

  it('waits while the object store is unavailable', async () => {
    const { slug, jobId } = await enqueuePart({ 1: CLAIM })
    let away = 2
    const put: ObjectStore['put'] = async (...args) => {
      if (away-- > 0) throw new TransientError('S3 is unavailable')
      await objects.put(...args)
    }
    await runUpload(jobId, NEVER, { put })
    expect(await objects.head(partKey(placeOf(slug, 'a.map'), 1))).toBeDefined()
  })
})

describe('the memory of an upload', () => {
  const PART = Buffer.from('a part')
  const uploads: [kind: string, make: (slug: string) => SourceMapJob, body: () => Buffer][] = [
    ['part', slug => ({ kind: 'part', slug, path: 'a.map', part: 0, sha256: digestOf(PART) }), () => PART],
    ['whole map', slug => ({ kind: 'single', slug, path: 'a.map', attempt: randomUUID() }), () => mapOf(randomUUID())],
  ]

  it.each(uploads)('of a %s is freed once it is stored', async (_, make, body) => {
    const jobId = await enqueue('source-maps', make(await register()), body())
    await runUpload(jobId)
    expect(freed).toContain(jobId)
  })

  it.each(uploads)(
    'of a %s is left alone if a connection of a failed attempt may still send it',
    async (_, make, body) => {
      const jobId = await enqueue('source-maps', make(await register()), body())
      let hasFailed = false
      const failing =
        <Args extends unknown[], T>(send: (...args: Args) => Promise<T>) =>
        async (...args: Args): Promise<T> => {
          if (hasFailed) return send(...args)
          hasFailed = true
          throw new TransientError('S3 is unavailable')
        }
      await runUpload(jobId, NEVER, { put: failing(objects.put), putStream: failing(objects.putStream) })
      expect(hasFailed).toBe(true)
      expect(freed).not.toContain(jobId)
    },
  )
})
