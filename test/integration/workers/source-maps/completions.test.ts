import { describe, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { manifestPrefix } from '../../../../shared/object-store/object-keys.ts'
import { digestOf, entryOf } from '../../../support/clients/release-client.ts'
import { until } from '../../../support/until.ts'
import {
  client,
  held,
  invalid,
  keysOf,
  listed,
  named,
  putParts,
  redis,
  register,
  releases,
  stack,
  workspaceId,
} from './fixture.ts'

describe('a hash', () => {
  it.each([
    ['SHA-256 in capitals', (bytes: Buffer) => digestOf(bytes).toUpperCase(), true],
    ['SHA-256 with its name', (bytes: Buffer) => `sha256:${digestOf(bytes)}`, true],
    ['SHA-1', (bytes: Buffer) => digestOf(bytes, 'sha1'), true],
    ['MD5 with its name', (bytes: Buffer) => `md5-${digestOf(bytes, 'md5')}`, true],
    ['of no known form', () => 'v1', false],
  ])('as %s is kept as it was sent', async (_name, hashOf, verified) => {
    const slug = await register()
    const maps = [named('staged.map'), named('parts.map'), named('single.map')] as const
    const hashes = maps.map(map => hashOf(map.bytes))
    await client.upload(slug, [maps[0]], hashes)
    await putParts(slug, maps[1])
    await client.putSingle(slug, maps[2].path, maps[2].bytes)
    const files = maps.map((map, i) => entryOf(map, { hash: hashes[i] as string }))
    expect(await client.complete(slug, files)).toMatchObject({ status: 200 })
    expect((await held(slug))?.manifest.files).toEqual(
      maps.map(({ bytes }, i) => ({ ...files[i], sha256: digestOf(bytes), size: bytes.length, verified })),
    )
    // The uploads are gone, so the maps of the paths come from the manifest.
    expect(await client.complete(slug, files, 99)).toMatchObject({ status: 200 })
    expect((await held(slug))?.pointer.sourceFileCount).toBe(99)
  })

  it('of other bytes is refused for every kind of upload', async () => {
    const slug = await register()
    const maps = [named('staged.map'), named('parts.map'), named('single.map')] as const
    await client.upload(slug, [maps[0]])
    await putParts(slug, maps[1])
    await client.putSingle(slug, maps[2].path, maps[2].bytes)
    const wrong = maps.map((map, i) =>
      entryOf(map, { hash: digestOf(Buffer.from('other'), ['sha256', 'sha1', 'md5'][i]) }),
    )
    const answer = await client.complete(slug, wrong)
    expect(answer).toMatchObject(
      invalid(/^"staged.map" does not match.*; "parts.map" does not match.*; "single.map" does not match/),
    )
    expect(await releases.manifest(workspaceId, slug)).toBeUndefined()
    expect(await listed(manifestPrefix(workspaceId, slug))).toEqual([])
  })
})

describe('a completion that is refused', () => {
  it('names up to 20 missing paths', async () => {
    const slug = await register()
    const maps = Array.from({ length: 30 }, (_, i) => named(`${i}.js.map`))
    const { body } = await client.complete(
      slug,
      maps.map(map => entryOf(map)),
    )
    expect(String(body.message).match(/"\d+\.js\.map" was not uploaded/g)).toHaveLength(20)
  })

  it('may name a path only once', async () => {
    const slug = await register()
    const map = named('a.js.map')
    expect(await client.complete(slug, [entryOf(map), entryOf(map)])).toMatchObject(
      invalid(/files\[1\].path "a.js.map"/),
    )
  })

  it('changes nothing of the release', async () => {
    const slug = await register()
    const map = named('a.js.map')
    await client.upload(slug, [map])
    await client.complete(slug, [entryOf(map)])
    const before = await held(slug)
    expect(await client.complete(slug, [entryOf(map), entryOf(named('b.js.map'))])).toMatchObject({ status: 400 })
    expect(await held(slug)).toEqual(before)
  })
})

describe('completions of one release', () => {
  it('that are equal give the same response and one manifest', async () => {
    const slug = await register()
    const maps = [named('a.js.map'), named('b.js.map')]
    await client.upload(slug, maps)
    const files = maps.map(map => entryOf(map))
    const answers = await Promise.all(Array.from({ length: 5 }, () => client.complete(slug, files, 9)))
    const before = await held(slug)
    answers.push(await client.complete(slug, files, 9))
    for (const answer of answers) expect(answer).toEqual({ status: 200, body: { ok: true, fileCount: 2 } })
    expect(await held(slug)).toEqual(before)
    expect(await listed(manifestPrefix(workspaceId, slug))).toHaveLength(1)
  })

  it('go back to the maps of an earlier one that is sent again', async () => {
    const slug = await register()
    const maps = [named('a.js.map'), named('b.js.map')] as const
    await client.upload(slug, maps)
    const [first, second] = [[entryOf(maps[0])], maps.map(map => entryOf(map))]
    expect(await client.complete(slug, first, 7)).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
    expect(await client.complete(slug, second, 9)).toEqual({ status: 200, body: { ok: true, fileCount: 2 } })
    const between = await held(slug)
    expect(await client.complete(slug, first, 7)).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
    const back = await held(slug)
    expect(back?.pointer).toMatchObject({ sourceMapCount: 1, sourceFileCount: 7 })
    expect(back?.manifest.files.map(file => file.path)).toEqual(['a.js.map'])
    expect(back?.pointer.sequence).toBeGreaterThan(between?.pointer.sequence as number)
    // Now it is the last one, so sending it again is a retry.
    expect(await client.complete(slug, first, 7)).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
    expect(await held(slug)).toEqual(back)
  })

  it.each([
    ['SHA-256', 'sha256'],
    ['MD5', 'md5'],
  ])('go back to an earlier one whose maps the later one does not name, by their %s', async (_name, algorithm) => {
    const slug = await register()
    const maps = [named('a.js.map'), named('b.js.map')] as const
    await client.upload(slug, maps)
    const [first, second] = maps.map(map => [entryOf(map, { hash: digestOf(map.bytes, algorithm) })])
    for (const files of [first, second, first]) {
      // Which maps are stored may be forgotten at any time.
      await releases.removeStoredMaps(
        workspaceId,
        maps.map(map => digestOf(map.bytes)),
      )
      expect(await client.complete(slug, files ?? [])).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
      expect((await held(slug))?.manifest.files.map(file => file.path)).toEqual([files?.[0]?.path])
    }
  })

  it('go back to the maps of an earlier one while all of them are in progress', async () => {
    const slug = await register()
    const maps = [named('a.js.map', 4 * MIB), named('b.js.map')] as const
    await client.upload(slug, maps)
    const [first, second] = [[entryOf(maps[0])], [entryOf(maps[1])]]
    const answers: ReturnType<typeof client.complete>[] = []
    for (const [i, files] of [first, second, first].entries()) {
      const before = await redis.get(keysOf(slug).sequence)
      answers.push(client.complete(slug, files))
      await until(`completion ${i} is accepted`, async () => (await redis.get(keysOf(slug).sequence)) !== before)
    }
    expect(await answers[2]).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
    expect(await answers[1]).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
    expect((await held(slug))?.manifest.files.map(file => file.path)).toEqual(['a.js.map'])
    expect((await held(slug))?.pointer.sequence).toBe(Number(await redis.get(keysOf(slug).sequence)))
    // The first one was either done before it was sent again, or left to be found by a retry.
    expect([200, 503]).toContain((await answers[0])?.status)
    expect(await client.complete(slug, first)).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
  })

  it('end with the one that was accepted last, whichever is done first', async () => {
    const slug = await register()
    const large = named('large.js.map', 8 * MIB)
    const maps = [large, ...Array.from({ length: 40 }, (_, i) => named(`${i}.js.map`))]
    await client.upload(slug, maps)
    const first = client.complete(
      slug,
      maps.map(map => entryOf(map)),
    )
    await until('the completion is accepted', () => redis.exists(keysOf(slug).sequence))
    const later = await client.complete(
      slug,
      maps.slice(1, 3).map(map => entryOf(map)),
    )
    expect(later).toEqual({ status: 200, body: { ok: true, fileCount: 2 } })
    expect(await first).toEqual({ status: 200, body: { ok: true, fileCount: 41 } })
    expect((await held(slug))?.pointer.sourceMapCount).toBe(2)
    expect((await held(slug))?.pointer.sequence).toBe(Number(await redis.get(keysOf(slug).sequence)))
  })

  it('are seen completely, one or the other, by concurrent reads', async () => {
    const slug = await register()
    const maps = Array.from({ length: 12 }, (_, i) => named(`${i}.js.map`))
    await client.upload(slug, maps)
    let reading = true
    let reads = 0
    const sizes = new Set<number>()
    const reader = (async () => {
      while (reading) {
        const seen = await held(slug)
        if (!seen) continue
        const { pointer, manifest } = seen
        reads++
        sizes.add(manifest.files.length)
        expect(manifest.sequence).toBe(pointer.sequence)
        expect(manifest.files).toHaveLength(pointer.sourceMapCount)
        expect(manifest.sourceFileCount).toBe(pointer.sourceFileCount)
      }
    })()
    for (let count = 1; count <= 12; count++) {
      const files = maps.slice(0, count).map(map => entryOf(map))
      expect(await client.complete(slug, files, 1_000 + count)).toMatchObject({ status: 200 })
    }
    reading = false
    await reader
    expect(reads).toBeGreaterThan(12)
    expect(sizes.size).toBeGreaterThan(3)
    // The current manifest and the one before.
    expect(await listed(manifestPrefix(workspaceId, slug))).toHaveLength(2)
  })
})

it('counts completions by their outcome', async () => {
  const text = await stack.pools.metrics()
  for (const line of [
    /penstock_completions_total\{outcome="completed"[^}]*\} \d+/,
    /penstock_completions_total\{outcome="refused"[^}]*\} \d+/,
  ]) {
    expect(text).toMatch(line)
  }
})
