import { describe, expect, it } from 'vitest'
import { symbolicationRequestSchema } from '../../../../schemas/queues/symbolication.ts'
import { MIB } from '../../../../schemas/units.ts'
import { sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import { decodePayload } from '../../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { stagedKeys } from '../../../../shared/queue/upload-keys.ts'
import { digestOf, entryOf } from '../../../support/clients/release-client.ts'
import { until } from '../../../support/until.ts'
import {
  client,
  contentOf,
  held,
  invalid,
  keysOf,
  listed,
  named,
  objects,
  putParts,
  redis,
  register,
  releases,
  stack,
  surfaceId,
  workspaceId,
} from './fixture.ts'

describe('a completion of presigned uploads', () => {
  it('makes a manifest with its counters current, stores each map under its digest, and leaves nothing behind', async () => {
    const slug = await register()
    const maps = [named('a.js.map'), named('deep/b.js.map', 3 * MIB), named('ü/c.js.map')]
    const files = maps.map(map => entryOf(map, { debugId: `id of ${map.path}` }))
    expect(await client.upload(slug, maps)).toBe(3)
    expect(await client.complete(slug, files, 40)).toEqual({ status: 200, body: { ok: true, fileCount: 3 } })

    const { pointer, manifest } = (await held(slug)) ?? {}
    expect(pointer).toMatchObject({ sourceMapCount: 3, sourceFileCount: 40 })
    expect(manifest).toMatchObject({ releaseSlug: slug, sequence: pointer?.sequence, sourceFileCount: 40 })
    expect(manifest?.files).toEqual(
      maps.map(({ bytes }, i) => ({ ...files[i], sha256: digestOf(bytes), size: bytes.length, verified: true })),
    )
    for (const { bytes } of maps) expect((await contentOf(digestOf(bytes)))?.equals(bytes)).toBe(true)
    expect(await listed(`uploads/${workspaceId}/${surfaceId}/${slug}/`)).toEqual([])
    // All that was declared has been uploaded and completed.
    expect(await redis.get(stagedKeys(workspaceId).bytes)).toBe('0')
  })

  it('is passed on to symbolication', async () => {
    const slug = await client.register('7.7.7')
    const map = named('a.js.map')
    await client.upload(slug, [map])
    await client.complete(slug, [entryOf(map)])
    const frames = await until('the release is passed on', async () => {
      const names = await redis.keys(`${queueKeys('symbolication').payloadPrefix}*`)
      const payloads = await Promise.all(names.map(name => redis.getBuffer(name)))
      const all = payloads.flatMap(payload => (payload ? decodePayload(payload) : []))
      const own = all.filter(frame => frame.body.includes(slug))
      return own.length > 0 ? own : undefined
    })
    expect(frames).toHaveLength(1)
    expect(frames[0]).toMatchObject({ workspaceId, surfaceId })
    const request = symbolicationRequestSchema.parse(JSON.parse(String(frames[0]?.body)))
    expect(request).toEqual({ kind: 'release', slug, release: '7.7.7' })
  })

  it('needs no upload of maps that another release has stored, and writes no second object', async () => {
    const [first, second] = [await register(), await register()]
    const maps = [named('a.js.map'), named('b.js.map')]
    await client.upload(first, maps)
    await client.complete(
      first,
      maps.map(map => entryOf(map)),
    )
    const before = await Promise.all(maps.map(({ bytes }) => objects.head(sourceMapKey(workspaceId, digestOf(bytes)))))
    expect(await client.upload(second, maps)).toBe(0)
    const answer = await client.complete(
      second,
      maps.map(map => entryOf(map, { hash: digestOf(map.bytes, 'md5') })),
    )
    expect(answer).toEqual({ status: 200, body: { ok: true, fileCount: 2 } })
    const after = await Promise.all(maps.map(({ bytes }) => objects.head(sourceMapKey(workspaceId, digestOf(bytes)))))
    expect(after).toEqual(before)
    expect((await held(second))?.manifest.files.map(file => file.sha256)).toEqual(maps.map(map => digestOf(map.bytes)))
  })

  it('requests a map again whose object was deleted', async () => {
    const [first, second] = [await register(), await register()]
    const map = named('a.js.map')
    await client.upload(first, [map])
    await client.complete(first, [entryOf(map)])
    const key = sourceMapKey(workspaceId, digestOf(map.bytes))
    await objects.deleteMany([key])
    expect(await client.upload(second, [map])).toBe(0)
    expect(await client.complete(second, [entryOf(map)])).toMatchObject(invalid(/"a.js.map" was not uploaded/))
    expect(await client.upload(second, [map])).toBe(1)
    expect(await client.complete(second, [entryOf(map)])).toMatchObject({ status: 200 })
    expect(await objects.head(key)).toBeDefined()
  })
})

describe('a completion of parts', () => {
  it.each([[[0, 1, 2, 3]], [[3, 2, 1, 0]], [[1, 3, 0, 2]], [[2, 0, 3, 1]]])(
    'gives the map when they are sent in the order %j',
    async order => {
      const slug = await register()
      const map = named('a.js.map')
      await putParts(slug, map, order)
      expect(await client.complete(slug, [entryOf(map)])).toMatchObject({ status: 200, body: { fileCount: 1 } })
      expect((await contentOf(digestOf(map.bytes)))?.equals(map.bytes)).toBe(true)
      expect(await listed(`uploads/${workspaceId}/${surfaceId}/${slug}/`)).toEqual([])
    },
  )

  it('names missing parts, and is checked again once they are sent', async () => {
    const slug = await register()
    const map = named('a.js.map', 300)
    await putParts(slug, map, [0, 2, 5])
    const files = [entryOf(map)]
    expect(await client.complete(slug, files)).toMatchObject(invalid(/"a.js.map" parts 1, 3, 4 are missing/))
    await putParts(slug, map, [1, 3])
    expect(await client.complete(slug, files)).toMatchObject(invalid(/"a.js.map" part 4 is missing/))
    expect(await releases.manifest(workspaceId, slug)).toBeUndefined()
    await putParts(slug, map, [4])
    expect(await client.complete(slug, files)).toMatchObject({ status: 200 })
  })

  it('seals their claims while a manifest names the map (seal-parts.lua)', async () => {
    const slug = await register()
    const [map, other] = [named('a.js.map'), named('b.js.map')]
    await putParts(slug, map)
    await putParts(slug, other)
    await client.complete(slug, [entryOf(map), entryOf(other)])
    const parts = keysOf(slug).parts('a.js.map')
    expect(await redis.ttl(parts)).toBe(-1)
    const conflict = { status: 409, body: { code: 'RELEASE_UPLOAD_CONFLICT' } }
    expect(await client.putPart(slug, 'a.js.map', 0, map.bytes.subarray(0, 50))).toMatchObject({ status: 200 })
    expect(await client.putPart(slug, 'a.js.map', 0, Buffer.from('other'))).toMatchObject(conflict)
    expect(await client.putPart(slug, 'a.js.map', 4, Buffer.from('more'))).toMatchObject(conflict)

    expect(await client.complete(slug, [entryOf(other)])).toMatchObject({ status: 200, body: { fileCount: 1 } })
    expect(await redis.ttl(parts)).toBeGreaterThan(86_000)
    expect(await redis.ttl(keysOf(slug).parts('b.js.map'))).toBe(-1)

    // Parts that are sent again count as repeated, because their map is stored.
    await putParts(slug, map)
    expect(await client.complete(slug, [entryOf(map)], 5)).toMatchObject({ status: 200 })
    expect(await redis.ttl(parts)).toBe(-1)
    expect((await held(slug))?.manifest.files.map(file => file.sha256)).toEqual([digestOf(map.bytes)])
  })
})

describe('a single upload', () => {
  it('is stored once under its digest, and completed', async () => {
    const slug = await register()
    const map = named('a.js.map', 2 * MIB)
    const objectKey = sourceMapKey(workspaceId, digestOf(map.bytes))
    expect(await client.putSingle(slug, map.path, map.bytes)).toEqual({ status: 200, body: { objectKey } })
    expect(await client.putSingle(slug, map.path, map.bytes)).toEqual({ status: 200, body: { objectKey } })
    expect((await contentOf(digestOf(map.bytes)))?.equals(map.bytes)).toBe(true)
    expect(await client.complete(slug, [entryOf(map)])).toMatchObject({ status: 200, body: { fileCount: 1 } })
  })

  it.each([
    ['text', 'not a map'],
    ['JSON that is not a source map', '{"version":2,"mappings":""}'],
    ['a cut map', '{"version":3,"mappings":"AA'],
    ['a guard without a line', ')]}\'{"version":3,"mappings":""}'],
  ])('with %s is refused', async (_name, body) => {
    const slug = await register()
    expect(await client.putSingle(slug, 'a.js.map', Buffer.from(body))).toMatchObject(invalid(/the body is not/))
    expect(await redis.exists(keysOf(slug).singles)).toBe(0)
  })

  it('may begin with a byte order mark and a guard, which are kept', async () => {
    const slug = await register()
    const body = Buffer.from('\ufeff)]}\'\n{"version":3,"mappings":""}')
    expect(await client.putSingle(slug, 'a.js.map', body)).toMatchObject({ status: 200 })
    expect((await contentOf(digestOf(body)))?.equals(body)).toBe(true)
  })

  it('replaces an earlier single upload', async () => {
    const slug = await register()
    const [first, last] = [named('a.js.map'), named('a.js.map')]
    await client.putSingle(slug, 'a.js.map', first.bytes)
    await client.putSingle(slug, 'a.js.map', last.bytes)
    // By its SHA-256, the first one would be found among the maps of the workspace.
    const byMd5 = entryOf(first, { hash: digestOf(first.bytes, 'md5') })
    expect(await client.complete(slug, [byMd5])).toMatchObject(invalid(/"a.js.map" does not match its hash/))
    expect(await client.complete(slug, [entryOf(last)])).toMatchObject({ status: 200 })
  })
})

it('counts uploads and completions by outcome', async () => {
  const text = await stack.pools.metrics()
  for (const line of [
    /penstock_source_map_uploads_total\{kind="part",outcome="stored"[^}]*\} \d+/,
    /penstock_source_map_uploads_total\{kind="single",outcome="not_a_map"[^}]*\} 4/,
    /penstock_completions_total\{outcome="completed"[^}]*\} \d+/,
    /penstock_source_map_stored_bytes_total\{kind="completion"[^}]*\} \d+/,
  ]) {
    expect(text).toMatch(line)
  }
})
