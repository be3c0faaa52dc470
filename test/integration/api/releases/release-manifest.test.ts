import { beforeAll, describe, expect, it } from 'vitest'
import type { Release } from '../../../../schemas/records/directory.ts'
import { manifestFile, registerRelease } from '../../../support/workspaces/stored-releases.ts'
import { ask, askRelease, complete, objects, slugOf, store } from './fixture.ts'

describe('a large manifest', () => {
  const files = Array.from({ length: 25_000 }, (_, i) => manifestFile(i))
  let release: Release

  beforeAll(async () => {
    release = await registerRelease(store, { slug: slugOf('large') })
    await complete(release, 100, files)
  })

  it.each(['', 'limit=7000&'])('is read completely page by page (%s)', async size => {
    const seen: unknown[] = []
    let cursor = ''
    while (seen.length <= files.length) {
      const { manifest, sourceMapCount } = await askRelease(release.slug, `?${size}${cursor}`)
      expect(sourceMapCount).toBe(25_000)
      seen.push(...(manifest?.files ?? []))
      if (!manifest?.nextCursor) break
      expect(manifest.files).toHaveLength(size ? 7_000 : 10_000)
      cursor = `cursor=${manifest.nextCursor}`
    }
    expect(seen).toEqual(files.map(({ sha256: _, ...file }) => file))
  })

  it('ends a page early when its texts are long', async () => {
    const long = await registerRelease(store, { slug: slugOf('long') })
    const chunkUrl = `https://cdn.example/${'\u0001'.repeat(2_000)}`
    await complete(
      long,
      1,
      Array.from({ length: 1_000 }, (_, i) => manifestFile(i, { chunkUrl })),
    )
    const first = await askRelease(long.slug)
    const second = await askRelease(long.slug, `?cursor=${first.manifest?.nextCursor}`)
    expect(first.manifest?.files.length).toBeLessThan(1_000)
    expect([...(first.manifest?.files ?? []), ...(second.manifest?.files ?? [])]).toHaveLength(1_000)
  })

  it('refuses a cursor of a replaced manifest and an invalid cursor', async () => {
    const { manifest } = await askRelease(release.slug, '?limit=1')
    await complete(release, 101, files.slice(0, 3))
    const path = `/v3/releases/${release.slug}?cursor=`
    const invalid = { status: 400, body: { code: 'REQUEST_INVALID', message: expect.stringMatching(/^cursor is/) } }
    expect(await ask(path + manifest?.nextCursor)).toMatchObject(invalid)
    const places = [[101, 9_999_999], [101, 3], [101, 200], [101, -1], [100, 0], [101], 'x', [101, 1.5]]
    for (const place of places) {
      expect(await ask(path + Buffer.from(JSON.stringify(place)).toString('base64url'))).toMatchObject(invalid)
    }
    expect(await ask(`/v3/releases/${release.slug}?limit=10001`)).toMatchObject({ status: 400 })
  })
})

it('counters and manifest agree while completions replace each other', async () => {
  const release = await registerRelease(store, { slug: slugOf('busy') })
  await complete(release, 1, [manifestFile(0)])
  let isOver = false
  const completions = (async () => {
    for (let sequence = 2; !isOver; sequence++) {
      await complete(
        release,
        sequence,
        Array.from({ length: sequence % 50 }, (_, i) => manifestFile(i)),
      )
    }
  })()
  try {
    const times = new Set<string | null>()
    for (let i = 0; i < 60; i++) {
      for (const answer of await Promise.all(Array.from({ length: 4 }, () => askRelease(release.slug)))) {
        expect(answer.manifest?.files).toHaveLength(answer.sourceMapCount)
        expect(answer.manifest?.completedAt).toBe(answer.completedAt)
        times.add(answer.completedAt)
      }
    }
    expect(times.size).toBeGreaterThan(5)
  } finally {
    isOver = true
    await completions
  }
})

it('a manifest that is missing, cut or of another count is answered with 503', async () => {
  const release = await registerRelease(store, { slug: slugOf('lost') })
  const pointer = await complete(release, 3, [manifestFile(1), manifestFile(2)])
  const { body } = (await objects.get(pointer.objectKey, 1e6)) ?? { body: Buffer.alloc(0) }
  const unavailable = { status: 503, retryAfter: '5', body: { code: 'INGEST_INFRA_UNAVAILABLE' } }
  const put = (bytes: Buffer) => objects.put(pointer.objectKey, bytes, { contentType: 'application/json' })
  await put(body.subarray(0, body.length / 2))
  expect(await ask(`/v3/releases/${release.slug}`)).toMatchObject(unavailable)
  await put(Buffer.from(JSON.stringify({ files: [manifestFile(1)] })))
  expect(await ask(`/v3/releases/${release.slug}`)).toMatchObject(unavailable)
  await objects.deleteMany([pointer.objectKey])
  expect(await ask(`/v3/releases/${release.slug}`)).toMatchObject(unavailable)
  await complete(release, 4, [manifestFile(1)])
  expect(await askRelease(release.slug)).toMatchObject({ sourceMapCount: 1 })
})
