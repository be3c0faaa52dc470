import { describe, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { manifestPrefix, sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../../../shared/object-store/types.ts'
import { uploadBudgetKeys } from '../../../../shared/queue/upload-budget.ts'
import { PermanentError, TransientError } from '../../../../shared/runtime/errors.ts'
import { digestOf, entryOf, mapOf } from '../../../support/clients/release-client.ts'
import {
  accept,
  bodyOf,
  keysOf,
  listed,
  movedTo,
  NEVER,
  named,
  objects,
  putParts,
  redis,
  register,
  releases,
  runCompletion,
  stage,
  verdictOf,
  workspaceId,
} from './upload-jobs-fixture.ts'

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

  it('lets its record expire a day after it was carried out, however long it has waited (deliver-verdict.lua)', async () => {
    const slug = await register()
    const map = named('a.map')
    await putParts(slug, map)
    const { jobId, recordKey } = await accept(slug, bodyOf([entryOf(map)]), 1)
    const { recorded, sequence } = keysOf(slug)
    const digest = recordKey.slice(recordKey.lastIndexOf(':') + 1)
    await redis.multi().zadd(recorded, '+inf', digest).zadd(recorded, '+inf', 'another').set(sequence, 1).exec()
    await runCompletion(jobId)
    expect(await redis.ttl(recordKey)).toBeGreaterThan(86_000)
    expect(Number(await redis.zscore(recorded, digest))).toBeGreaterThan(Date.now() / 1_000 + 86_000)
    expect(await redis.ttl(sequence)).toBe(-1)
    const last = await accept(slug, bodyOf([]), 2)
    await redis.zrem(recorded, 'another')
    await runCompletion(last.jobId)
    expect(await redis.ttl(sequence)).toBeGreaterThan(172_000)
    expect(await redis.ttl(recorded)).toBeGreaterThan(86_000)
  })

  it('whose record is of a newer version is left to a newer worker', async () => {
    const slug = await register()
    const map = named('a.map')
    await putParts(slug, map)
    const { jobId, attempt, recordKey } = await accept(slug, bodyOf([entryOf(map)]), 1, undefined, 2)
    await expect(runCompletion(jobId)).rejects.toThrow(/newer/)
    expect(await verdictOf(attempt)).toBeUndefined()
    await redis.set(recordKey, JSON.stringify({ version: 1, attempt, sequence: 1 }))
    await runCompletion(jobId)
    expect(await verdictOf(attempt)).toMatchObject({ ok: true })
  })

  it('is refused for an unknown release or a release of another surface', async () => {
    const unknown = await accept('rel_unknown', bodyOf([]), 1)
    await runCompletion(unknown.jobId)
    expect(await verdictOf(unknown.attempt)).toMatchObject({ ok: false, code: 'RELEASE_NOT_FOUND' })
    const others = await accept(await register(), bodyOf([]), 1, 'srf_other')
    await runCompletion(others.jobId)
    expect(await verdictOf(others.attempt)).toMatchObject({ ok: false, code: 'AUTH_AK_SCOPE_MISMATCH' })
    for (const { recordKey } of [unknown, others]) expect(await redis.exists(recordKey)).toBe(0)
  })

  it('that is older than the current one is answered and changes nothing', async () => {
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

  it('that is overtaken before its manifest is current leaves no manifest behind', async () => {
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

  it('finds the map that another completion made of its parts (record-assembled.lua)', async () => {
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

  it('keeps no claims of a release that is deleted before it ends', async () => {
    const slug = await register()
    const map = named('a.map')
    await putParts(slug, map)
    const { jobId } = await accept(slug, bodyOf([entryOf(map)]), 1)
    const deleteMany: ObjectStore['deleteMany'] = async names => {
      await objects.deleteMany(names)
      await releases.remove(workspaceId, slug)
    }
    await runCompletion(jobId, NEVER, { deleteMany })
    expect(await releases.manifest(workspaceId, slug)).toBeUndefined()
    expect(await redis.keys(`penstock:{source-maps.0}:upload:${workspaceId}:*:${slug}:*`)).toEqual([])
    expect(await redis.hget(uploadBudgetKeys(workspaceId).sealed, `srf_1/${slug}`)).toBeNull()
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

  it('that the object store permanently refuses is refused and not repeated', async () => {
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

  it('whose record belongs to another attempt or is gone ends without a change', async () => {
    const slug = await register()
    const { jobId, attempt, recordKey } = await accept(slug, bodyOf([]), 1)
    await redis.set(recordKey, JSON.stringify({ attempt: 'another', sequence: 2 }))
    await runCompletion(jobId)
    expect(await verdictOf(attempt)).toBeUndefined()
    expect(await movedTo('completions', jobId)).toBeNull()
    expect(await releases.manifest(workspaceId, slug)).toBeUndefined()
  })
})
