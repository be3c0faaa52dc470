import { beforeAll, describe, expect, it } from 'vitest'
import { releasesPageSchema } from '../../../../schemas/http/releases/schemas.ts'
import { directoryKeys } from '../../../../shared/directory/record.ts'
import { releaseKeys } from '../../../../shared/directory/release-store.ts'
import { releaseSlugOf } from '../../../../shared/ids/release-slug.ts'
import { signToken } from '../../../support/services/api.ts'
import { completeRelease, manifestFile, registerRelease } from '../../../support/workspaces/stored-releases.ts'
import { ask, NOW, objects, redis, slugOf, store } from './fixture.ts'

describe('the releases of a workspace', () => {
  /** Slugs, newest first; releases of the same millisecond are in descending order of their slug. */
  const order = ['e', 'd9', 'd5', 'd4', 'd2', 'd1', 'c', 'b', 'a'].map(name => slugOf(`list${name}`))

  beforeAll(async () => {
    const times = new Map([...'abcde'].map((letter, i) => [letter, new Date(NOW + i).toISOString()]))
    for (const slug of [...order].sort(() => Math.random() - 0.5)) {
      const createdAt = times.get(slug.replace(/^.*list/, '')[0] ?? '') ?? ''
      await registerRelease(store, { slug, createdAt, workspaceId: 'ws_2', name: `v-${slug}`, surfaceId: 'srf_2' })
    }
    const [newest = ''] = order
    const files = [manifestFile(1), manifestFile(2), manifestFile(3)]
    await completeRelease({ store, objects }, { workspaceId: 'ws_2', slug: newest }, { sequence: 5, files })
  })

  it.each([1, 2, 3, 4, 8, 9, 50])('are listed newest first in pages of %i', async limit => {
    const bearer = await signToken({ sub: 'user_2', org: 'globex' })
    const seen: string[] = []
    let path = `/v3/releases?limit=${limit}`
    while (seen.length <= order.length) {
      const { status, body } = await ask(path, bearer)
      expect(status).toBe(200)
      const page = releasesPageSchema.parse(body)
      seen.push(...page.releases.map(release => release.slug))
      if (page.nextCursor === null) break
      expect(page.releases).toHaveLength(limit)
      path = `/v3/releases?limit=${limit}&cursor=${page.nextCursor}`
    }
    expect(seen).toEqual(order)
  })

  it('show the registered fields and the counters of the current manifest', async () => {
    const { body } = await ask('/v3/releases?limit=2', await signToken({ sub: 'user_2', org: 'globex' }))
    const [newest, next] = releasesPageSchema.parse(body).releases
    expect(newest).toEqual({
      slug: order[0],
      version: `v-${order[0]}`,
      surfaceId: 'srf_2',
      commit: null,
      createdAt: new Date(NOW + 4).toISOString(),
      sourceMapCount: 3,
      sourceFileCount: 7,
      completedAt: '2026-01-01T00:00:00.005Z',
    })
    expect(next).toMatchObject({ sourceMapCount: 0, sourceFileCount: 0, completedAt: null })
  })

  it('continue where a page ended, without releases that were registered since (list-releases.lua)', async () => {
    const bearer = await signToken({ sub: 'user_2', org: 'globex' })
    const { nextCursor } = releasesPageSchema.parse((await ask('/v3/releases?limit=3', bearer)).body)
    const newer = { slug: slugOf('listz'), createdAt: new Date(NOW + 99).toISOString() }
    await registerRelease(store, { ...newer, workspaceId: 'ws_2' })
    const { body } = await ask(`/v3/releases?limit=2&cursor=${nextCursor}`, bearer)
    expect(releasesPageSchema.parse(body).releases.map(release => release.slug)).toEqual(order.slice(3, 5))
    await redis.zrem(releaseKeys.releases('ws_2'), newer.slug)
  })

  it('are one of each surface for a version, and one for a surface and a version, or none', async () => {
    const registered = { workspaceId: 'ws_2', surfaceId: 'srf_2', name: '1.4.2 ü' }
    const slug = releaseSlugOf(registered)
    await registerRelease(store, { ...registered, slug, createdAt: new Date(NOW - 1).toISOString() })
    await redis.zadd(directoryKeys.surfaceIds('ws_2'), 0, 'srf_2')
    const named = async (surface: string, version: string, bearer?: string) => {
      const query = new URLSearchParams({ ...(surface && { surface }), version })
      const { body } = await ask(`/v3/releases?${query}`, bearer)
      return releasesPageSchema.parse(body).releases.map(release => release.slug)
    }
    const bearer = await signToken({ sub: 'user_2', org: 'globex' })
    expect(await named('srf_2', '1.4.2 ü', bearer)).toEqual([slug])
    expect(await named('', '1.4.2 ü', bearer)).toEqual([slug])
    expect(await named('', '1.4.2 ü')).toEqual([])
    expect(await named('srf_2', '1.4.3', bearer)).toEqual([])
    expect(await named('srf_1', '1.4.2 ü', bearer)).toEqual([])
    expect(await named('srf_2', '1.4.2 ü')).toEqual([])
    expect(await ask('/v3/releases?surface=srf_2', bearer)).toMatchObject({
      status: 400,
      body: { message: 'version must be given with "surface"' },
    })
    await redis.zrem(releaseKeys.releases('ws_2'), slug)
    await redis.del(directoryKeys.surfaceIds('ws_2'))
  })

  it('refuse an invalid cursor and an invalid limit', async () => {
    const forged = (place: unknown) => Buffer.from(JSON.stringify(place)).toString('base64url')
    const cursors = ['x', forged([1]), forged(['1', 'rel_a']), forged([-1, 'rel_a']), forged([1, 'a']), forged(null)]
    for (const cursor of cursors) {
      expect(await ask(`/v3/releases?cursor=${cursor}`)).toMatchObject({
        status: 400,
        body: { code: 'REQUEST_INVALID', message: expect.stringMatching(/^cursor/), service: 'api-analytics' },
      })
    }
    expect(await ask('/v3/releases?limit=0')).toMatchObject({ status: 400, body: { code: 'REQUEST_INVALID' } })
  })
})
