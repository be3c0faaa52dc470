import { expect, it } from 'vitest'
import type { Release } from '../../schemas/records/directory.ts'
import { createReleaseLookup } from './release-lookup.ts'

const release = { workspaceId: 'ws_1', slug: 'rel_a', surfaceId: 'srf_1' } as Release

function given(...releases: Release[]) {
  const asked: string[] = []
  const lookup = createReleaseLookup({
    async release(workspaceId, slug) {
      asked.push(`${workspaceId}/${slug}`)
      return releases.find(known => known.workspaceId === workspaceId && known.slug === slug)
    },
  })
  return { asked, lookup, releases }
}

it('asks once for a registered release, and each time for an unknown one', async () => {
  const { asked, lookup, releases } = given()
  expect(await lookup.surfaceOf('ws_1', 'rel_a')).toBeUndefined()
  releases.push(release)
  expect(await lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  expect(lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  expect(asked).toEqual(['ws_1/rel_a', 'ws_1/rel_a'])
})

it('lets all who ask at once share the answer', async () => {
  const { asked, lookup } = given(release)
  await Promise.all([1, 2, 3].map(() => lookup.surfaceOf('ws_1', 'rel_a')))
  expect(asked).toHaveLength(1)
})

it('knows a release of one workspace as that of no other', async () => {
  const { lookup } = given()
  lookup.remember(release)
  expect(lookup.surfaceOf('ws_1', 'rel_a')).toBe('srf_1')
  expect(await lookup.surfaceOf('ws_2', 'rel_a')).toBeUndefined()
})
