import { expect, it } from 'vitest'
import type { Release } from '../../schemas/records/directory.ts'
import { createReleaseLookup } from './release-lookup.ts'

const release = { workspaceId: 'ws_1', slug: 'rel_a', surfaceId: 'srf_1' } as Release

function given(...releases: Release[]) {
  const lookups: string[] = []
  const clock = { ms: 0 }
  const store = {
    async release(workspaceId: string, slug: string) {
      lookups.push(`${workspaceId}/${slug}`)
      return releases.find(known => known.workspaceId === workspaceId && known.slug === slug)
    },
  }
  return { lookups, lookup: createReleaseLookup(store, () => clock.ms), releases, clock }
}

it('looks up a release again after a minute, because it may have been deleted', async () => {
  const { lookup, releases, clock } = given(release)
  expect(await lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  releases.length = 0
  clock.ms += 59_999
  expect(lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  clock.ms += 1
  expect(await lookup.surfaceOf('ws_1', 'rel_a')).toBeUndefined()
})

it('looks up a registered release once, and an unknown one each time', async () => {
  const { lookups, lookup, releases } = given()
  expect(await lookup.surfaceOf('ws_1', 'rel_a')).toBeUndefined()
  releases.push(release)
  expect(await lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  expect(lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  expect(lookups).toEqual(['ws_1/rel_a', 'ws_1/rel_a'])
})

it('shares one lookup among concurrent requests', async () => {
  const { lookups, lookup } = given(release)
  await Promise.all([1, 2, 3].map(() => lookup.surfaceOf('ws_1', 'rel_a')))
  expect(lookups).toHaveLength(1)
})

it('keeps releases of different workspaces apart', async () => {
  const { lookup } = given()
  lookup.remember(release)
  expect(lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  expect(await lookup.surfaceOf('ws_2', 'rel_a')).toBeUndefined()
})
