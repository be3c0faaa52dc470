import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { STORED_MAPS_MAX } from '../../../shared/directory/maps/map-store.ts'
import { createReleaseStore, releaseKeys } from '../../../shared/directory/release-store.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

const redis = new Redis(`${sharedServices().redisUrl}/5`)
const store = createReleaseStore(redis)
const digests = (count: number) => Array.from({ length: count }, () => randomBytes(32).toString('hex'))
const known = (workspaceId = 'ws_1') => redis.scard(releaseKeys.maps(workspaceId))

beforeEach(() => redis.flushdb())
afterAll(async () => {
  await redis.flushdb()
  redis.disconnect()
})

it('the maps of a workspace that are known have a bound, and another workspace keeps its own (add-stored-maps.lua)', async () => {
  const other = digests(10)
  await store.addStoredMaps('ws_2', other)
  await store.addStoredMaps('ws_1', digests(STORED_MAPS_MAX))
  const last = digests(500)
  await store.addStoredMaps('ws_1', last)
  expect(await known()).toBe(STORED_MAPS_MAX)
  // Which maps are forgotten is random: one of the last 500 is with a probability of half a percent.
  expect((await store.storedMaps('ws_1', last)).size).toBeGreaterThan(400)
  expect(await store.storedMaps('ws_2', other)).toEqual(new Set(other))
})

it('deleting a release lifts its part of them, and deleting the last one lifts all (remove-release.lua)', async () => {
  await registerRelease(store, { slug: 'rel_first' })
  await registerRelease(store, { slug: 'rel_second' })
  await store.addStoredMaps('ws_1', digests(1_000))
  expect(await store.remove('ws_1', 'rel_unknown')).toBe('absent')
  expect(await known()).toBe(1_000)
  expect(await store.remove('ws_1', 'rel_first')).toBe('removed')
  expect(await known()).toBe(500)
  expect(await store.remove('ws_1', 'rel_second')).toBe('removed')
  expect(await known()).toBe(0)
})
