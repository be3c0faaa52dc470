import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { deleteRelease } from '../../../../shared/directory/delete-release.ts'
import { removeUploads } from '../../../../shared/queue/remove-uploads.ts'
import { COMPLETIONS_MAX_BYTES, UPLOADS_MAX_BYTES, uploadBudgetKeys } from '../../../../shared/queue/upload-budget.ts'
import { digestOf, entryOf, mapOf } from '../../../support/clients/release-client.ts'
import { client, held, keysOf, named, putParts, redis, register, releases, surfaceId, workspaceId } from './fixture.ts'

const budget = uploadBudgetKeys(workspaceId)
const sum = async (key: string, field = 'total') => Number((await redis.hget(key, field)) ?? 0)
const uploadsOf = (slug: string) => redis.keys(`penstock:{*}:upload:${workspaceId}:${surfaceId}:${slug}:*`)
const remove = (slug: string) =>
  deleteRelease({ releases, removeUploads: release => removeUploads(redis, release) }, workspaceId, slug)
const completed = (fileCount: number) => ({ status: 200, body: { ok: true, fileCount } })
const overBudget = (message: RegExp) => ({
  status: 429,
  body: { code: 'INGEST_BACKPRESSURE', service: 'frontier-buildtime', message: expect.stringMatching(message) },
})

describe('the budget of a workspace', () => {
  it('counts the claims of parts until no manifest keeps them and they have expired (unseal-parts.lua)', async () => {
    const slug = await register()
    const maps = [named('a.map'), named('b.map')] as const
    for (const map of maps) await putParts(slug, map)
    const claimed = await sum(budget.sums)
    expect(claimed).toBeGreaterThan(2 * 4 * 250)
    expect(await redis.scard(keysOf(slug).claimed)).toBe(2)

    expect(await client.complete(slug, [entryOf(maps[0])])).toEqual(completed(1))
    expect(await sum(budget.sums)).toBe(claimed / 2)
    expect(await sum(budget.sealed)).toBe(claimed / 2)
    expect(await redis.scard(keysOf(slug).claimed)).toBe(1)
    expect(await redis.ttl(keysOf(slug).sealed)).toBe(-1)

    // The claims of the first map expire now, those of the second one stay.
    expect(await client.complete(slug, [entryOf(maps[1])])).toEqual(completed(1))
    expect(await sum(budget.sums)).toBe(claimed / 2)
    expect(await sum(budget.sealed)).toBe(claimed / 2)
    expect(await redis.smembers(keysOf(slug).sealed)).toEqual([keysOf(slug).parts('b.map').slice(-64)])
    expect(await redis.ttl(keysOf(slug).parts('a.map'))).toBeGreaterThan(0)

    await redis.hset(budget.sealed, 'total', UPLOADS_MAX_BYTES)
    expect(await client.putPart(slug, 'c.map', 0, randomBytes(10))).toMatchObject(
      overBudget(/^path must bring the uploads of the workspace to at most 256 MiB .*delete releases/),
    )
    await redis.hset(budget.sealed, 'total', claimed / 2)
    await remove(slug)
    expect([await sum(budget.sums), await sum(budget.sealed)]).toEqual([0, 0])
  })

  it('is lifted by deleting a release, of which nothing is left then (remove-maps.lua, remove-completions.lua)', async () => {
    const [slug, other] = [await register(), await register()]
    const maps = [named('a.map'), named('b.map'), named('c.map'), named('d.map')] as const
    await putParts(slug, maps[0])
    await putParts(slug, maps[1])
    await client.putSingle(slug, maps[2].path, maps[2].bytes)
    await client.upload(slug, [maps[3]])
    await putParts(other, maps[0])
    await client.putSingle(other, maps[2].path, maps[2].bytes)
    const files = [maps[0], maps[2], maps[3]].map(map => entryOf(map))
    expect(await client.complete(slug, files)).toEqual(completed(3))
    expect(await client.complete(other, [entryOf(maps[0])])).toEqual(completed(1))
    const before = (await uploadsOf(other)).sort()
    const member = `${surfaceId}/${other}`

    expect(await remove(slug)).toBe('removed')
    expect(await uploadsOf(slug)).toEqual([])
    expect((await uploadsOf(other)).sort()).toEqual(before)
    expect(await sum(budget.sums)).toBe(await sum(budget.sums, member))
    expect(await sum(budget.sealed)).toBe(await sum(budget.sealed, member))
    expect(await sum(budget.completions.sums)).toBe(await sum(budget.completions.sums, member))
    expect(await sum(budget.sealed)).toBeGreaterThan(0)
    for (const ends of [budget.ends, budget.completions.ends])
      expect(await redis.zrange(ends, '0', '-1')).toEqual([member])

    await remove(other)
    expect(await sum(budget.sums)).toBe(0)
    expect(await sum(budget.completions.sums)).toBe(0)
  })

  it('begins again with a release that is registered again', async () => {
    const slug = await client.register('again')
    const map = named('a.map')
    await putParts(slug, map)
    expect(await client.complete(slug, [entryOf(map)])).toEqual(completed(1))
    await remove(slug)
    expect(await client.register('again')).toBe(slug)
    // Neither the record of the completion nor the claims of the parts are left. By a SHA-256 the stored map would be found.
    const byMd5 = entryOf(map, { hash: digestOf(map.bytes, 'md5') })
    expect(await client.complete(slug, [byMd5])).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/"a.map" was not uploaded/) },
    })
    expect(await client.putPart(slug, 'a.map', 0, randomBytes(10))).toMatchObject({ status: 200 })
    expect(await held(slug)).toBeUndefined()
    await remove(slug)
  })

  it('is lifted by the manifest that names a declared path, and a build in progress is completed nevertheless (forget-declared.lua)', async () => {
    const slug = await register()
    const maps = [named('a.map'), named('b.map')] as const
    const { signed } = keysOf(slug)
    const charged = async () => sum(budget.sums, `${surfaceId}/${slug}`)
    await client.upload(slug, maps)
    const [both, paths] = [await charged(), maps.map(map => map.path)]
    expect((await redis.hkeys(signed)).sort()).toEqual(paths)
    // Another build of the same release declares a map that is about to be settled.
    await client.sign(slug, [maps[0]])
    expect(await charged()).toBe(both)

    expect(await client.complete(slug, [entryOf(maps[0])])).toEqual(completed(1))
    expect(await redis.hkeys(signed)).toEqual(['b.map'])
    expect(await charged()).toBeLessThan(both)
    expect(await client.complete(slug, [entryOf(maps[1])])).toEqual(completed(1))
    expect(await redis.exists(signed)).toBe(0)
    expect(await charged()).toBe(0)

    expect(await client.complete(slug, [entryOf(maps[0])], 3)).toEqual(completed(1))
    expect((await held(slug))?.manifest.files.map(file => file.path)).toEqual(['a.map'])
    await remove(slug)
  })

  it('keeps a declared path that is declared with another map meanwhile', async () => {
    const slug = await register()
    const map = named('a.map')
    await client.upload(slug, [map])
    const next = { path: map.path, bytes: mapOf('next') }
    await client.sign(slug, [next])
    // The first one is sent once more, in another way.
    await client.putSingle(slug, map.path, map.bytes)
    expect(await client.complete(slug, [entryOf(map)])).toEqual(completed(1))
    expect(await redis.hkeys(keysOf(slug).signed)).toEqual([map.path])
    await remove(slug)
  })

  it('bounds single uploads (record-single.lua)', async () => {
    const slug = await register()
    const [first, second] = [named('a.map'), named('b.map')]
    expect(await client.putSingle(slug, first.path, first.bytes)).toMatchObject({ status: 200 })
    const charged = await sum(budget.sums)
    expect(charged).toBeGreaterThan(200)
    // The same path again takes no more.
    expect(await client.putSingle(slug, first.path, second.bytes)).toMatchObject({ status: 200 })
    expect(await sum(budget.sums)).toBe(charged)
    await redis.hset(budget.sums, 'total', UPLOADS_MAX_BYTES)
    expect(await client.putSingle(slug, second.path, second.bytes)).toMatchObject(
      overBudget(/^path must bring .*256 MiB/),
    )
    expect(await redis.hkeys(keysOf(slug).singles)).toEqual(['a.map'])
    expect(await client.putSingle(slug, first.path, mapOf('third'))).toMatchObject({ status: 200 })
    await redis.hset(budget.sums, 'total', charged)
    await remove(slug)
  })

  it('bounds the records of completions, without those of refused ones', async () => {
    const slug = await register()
    const { sums, ends } = budget.completions
    expect(await client.complete(slug, [], 1)).toEqual(completed(0))
    const charged = await sum(sums)
    expect(charged).toBeGreaterThan(500)
    expect(await client.complete(slug, [entryOf(named('never-sent.map'))])).toMatchObject({ status: 400 })
    expect(await sum(sums)).toBe(charged)
    expect(await redis.zcard(keysOf(slug).recorded)).toBe(1)
    // A record that is replaced takes no more, and one that has expired nothing.
    expect(await client.complete(slug, [], 2)).toEqual(completed(0))
    expect(await client.complete(slug, [], 1)).toEqual(completed(0))
    expect(await sum(sums)).toBe(2 * charged)
    const [oldest] = await redis.zrange(keysOf(slug).recorded, '0', '0')
    await redis.zadd(keysOf(slug).recorded, 1, oldest ?? '')
    await redis.del(keysOf(slug).completion(oldest ?? ''))
    expect(await client.complete(slug, [], 3)).toEqual(completed(0))
    expect(await sum(sums)).toBe(2 * charged)

    await redis.hset(sums, 'total', COMPLETIONS_MAX_BYTES, `${surfaceId}/gone`, COMPLETIONS_MAX_BYTES - 2 * charged)
    const refused = await client.complete(slug, [], 4)
    expect(refused).toMatchObject(
      overBudget(/^files must bring the completions .* to at most 16 MiB .*delete releases/),
    )
    expect(await redis.zcard(keysOf(slug).recorded)).toBe(2)
    // Repeating the last one takes nothing.
    expect(await client.complete(slug, [], 3)).toEqual(completed(0))
    await redis.zadd(ends, 1, `${surfaceId}/gone`)
    expect(await client.complete(slug, [], 4)).toEqual(completed(0))
    await remove(slug)
    expect(await sum(sums)).toBe(0)
  })
})
