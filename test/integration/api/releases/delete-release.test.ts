import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { budgetMember, uploadBudgetKeys } from '../../../../shared/queue/upload-budget.ts'
import { uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { signToken } from '../../../support/services/api.ts'
import { manifestFile, registerRelease } from '../../../support/workspaces/stored-releases.ts'
import { ask, complete, deleteRelease, redis, slugOf, store } from './fixture.ts'

it('deletes a release of the workspace with its manifest, and lets it begin again without maps', async () => {
  const release = await registerRelease(store, { slug: slugOf('deleted') })
  await complete(release, 1, [manifestFile(1)])
  expect((await ask(`/v3/releases/${release.slug}`)).status).toBe(200)

  const others = [await signToken({ sub: 'user_2', org: 'globex' }), await signToken({ sub: 'user_3', org: 'narrow' })]
  expect(await deleteRelease(release.slug, others[0])).toBe(404)
  expect(await deleteRelease(release.slug, others[1])).toBe(403)
  expect(await deleteRelease(release.slug)).toBe(200)
  expect(await deleteRelease(release.slug)).toBe(404)
  expect((await ask(`/v3/releases/${release.slug}`)).status).toBe(404)
  expect(await store.manifest('ws_1', release.slug)).toBeUndefined()

  await registerRelease(store, { slug: release.slug })
  const { body } = await ask(`/v3/releases/${release.slug}`)
  expect(body).toMatchObject({ release: { sourceMapCount: 0, manifest: null } })
})

it('removes the uploads of a release, however many, and makes room for others', async () => {
  const release = await registerRelease(store, { slug: slugOf('uploads') })
  const keys = uploadKeys(release)
  const { sums, ends, sealed, completions } = uploadBudgetKeys('ws_1')
  const member = budgetMember(release)
  const digests = Array.from({ length: 1_200 }, (_, i) => createHash('sha256').update(`${i}`).digest('hex'))
  const pipeline = redis.pipeline()
  for (const [i, digest] of digests.entries()) {
    pipeline.hset(keys.partsOf(digest), 'since', 1).sadd(i % 2 === 0 ? keys.claimed : keys.sealed, digest)
    pipeline.set(keys.completion(digest), '{}').zadd(keys.recorded, 2e9 + i, digest)
  }
  pipeline.hset(keys.signed, 'a.map', '{}').hset(keys.singles, 'a.map', 'x').set(keys.sequence, 1)
  for (const key of [sums, sealed, completions.sums]) pipeline.hset(key, member, 100, 'srf_1/other', 20, 'total', 120)
  for (const key of [ends, completions.ends]) pipeline.zadd(key, 2e9, member, 2e9, 'srf_1/other')
  await pipeline.exec()

  expect(await deleteRelease(release.slug)).toBe(200)
  expect(await redis.keys(`penstock:{*}:upload:ws_1:srf_1:${release.slug}:*`)).toEqual([])
  for (const key of [sums, sealed, completions.sums]) {
    expect(await redis.hgetall(key)).toEqual({ 'srf_1/other': '20', total: '20' })
  }
  for (const key of [ends, completions.ends]) expect(await redis.zrange(key, '0', '-1')).toEqual(['srf_1/other'])
  await redis.del(sums, ends, sealed, completions.sums, completions.ends)
})
