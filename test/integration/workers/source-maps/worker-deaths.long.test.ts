import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { SourceMapJob } from '../../../../schemas/queues/source-maps.ts'
import { manifestSchema } from '../../../../schemas/records/manifest.ts'
import { MIB } from '../../../../schemas/units.ts'
import { manifestPrefix, partKey, sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import { decodePayload } from '../../../../shared/queue/payload-frame.ts'
import { digestOf, entryOf } from '../../../support/clients/release-client.ts'
import { type FaultAt, faultAt } from '../../../support/services/fault-at.ts'
import {
  accept,
  bodyOf,
  enqueue,
  keysOf,
  listed,
  movedTo,
  named,
  objects,
  placeOf,
  putParts,
  redis,
  register,
  releases,
  runCompletion,
  runUpload,
  stage,
  surfaceId,
  verdictOf,
  workspaceId,
} from './upload-jobs-fixture.ts'

const AT_ONCE = 8

/** Runs the work with a death at its first call of a store, then at its second, and so on, until it completes. */
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
  it('leaves a completion to the next worker, which reaches the same state', async () => {
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
      expect(JSON.parse((await redis.get(recordKey)) as string)).toEqual({
        version: 1,
        attempt,
        sequence: 7,
        fileCount: 3,
      })
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

  it('leaves a part to the next worker', async () => {
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
      const storedAt = expect.stringMatching(/^\d{10}$/)
      expect(await redis.hgetall(parts)).toEqual({ 3: `${digestOf(body)}:100`, 'stored:3': storedAt, bytes: '100' })
      expect(await movedTo('source-maps', jobId)).toBeNull()
    })
    expect(deaths).toBeGreaterThan(4)
  })

  it('leaves a single upload to the next worker', async () => {
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
