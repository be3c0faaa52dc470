import { expect, it } from 'vitest'
import { HOUR_MS } from '../../../../schemas/units.ts'
import { TokenBuckets } from '../../../../shared/concurrency/token-bucket.ts'
import type { ObjectStore } from '../../../../shared/object-store/types.ts'
import { completeRelease } from '../../../../workers/source-maps/complete-release.ts'
import { entryOf, type FileEntry } from '../../../support/clients/release-client.ts'
import { client, named, objects, redis, register, releases, surfaceId, workspaceId } from './fixture.ts'

const MAP_BYTES = 1_000

/** Returns a function that judges completions of a release, the budgets of its worker, and the maps that it has read. */
async function setUp(amount: number) {
  const slug = await register()
  const clock = { nowMs: 0 }
  const refusedReads = new TokenBuckets({ capacity: amount, refillMs: HOUR_MS }, () => clock.nowMs)
  const readKeys: string[] = []
  const counted: ObjectStore = {
    ...objects,
    getStream(key) {
      readKeys.push(key)
      return objects.getStream(key)
    },
  }
  let sequence = 0
  const judge = (files: readonly FileEntry[], surface = surfaceId) =>
    completeRelease(
      {
        redis,
        objects: counted,
        releases,
        refusedReads,
        retry: (_operation, work) => work(),
        now: Date.now,
      },
      {
        workspaceId,
        surfaceId: surface,
        slug,
        sequence: ++sequence,
        body: Buffer.from(JSON.stringify({ files, sourceFileCount: sequence })),
      },
    )
  return { slug, clock, readKeys, judge, refusedReads }
}

it('refuses the completions of a surface unread when its refused ones have read as much as they may', async () => {
  const { slug, clock, readKeys, judge, refusedReads } = await setUp(2 * MAP_BYTES)
  const map = named('a.js.map', MAP_BYTES)
  await client.upload(slug, [map])
  const files = [entryOf(map), entryOf(named('absent.js.map'))]
  for (let n = 0; n < 2; n++) {
    expect(await judge(files)).toMatchObject({ outcome: 'refused', code: 'REQUEST_INVALID' })
  }
  const readBefore = readKeys.length
  expect(await judge(files)).toMatchObject({
    outcome: 'refused',
    code: 'INGEST_BACKPRESSURE',
    message: expect.stringMatching(/^the refused completions of the surface have read 8192 MiB of maps within an hour/),
  })
  expect(readKeys.length).toBe(readBefore)
  expect(refusedReads.of(`${workspaceId} srf_other`).left).toBeGreaterThan(0)

  clock.nowMs += HOUR_MS
  expect(await judge([entryOf(map)])).toMatchObject({ outcome: 'completed', fileCount: 1 })
})

it('counts nothing of completions that succeed', async () => {
  const { slug, judge } = await setUp(MAP_BYTES)
  for (let n = 0; n < 3; n++) {
    const maps = [named(`${n}.js.map`, MAP_BYTES), named(`${n}b.js.map`, MAP_BYTES)]
    await client.upload(slug, maps)
    expect(await judge(maps.map(map => entryOf(map)))).toMatchObject({ outcome: 'completed' })
  }
})
