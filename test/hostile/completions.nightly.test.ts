import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { digestOf, entryOf, mapOf } from '../support/clients/release-client.ts'
import { ATTACK_MS, keepAttacking } from '../support/hostile/attacker.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

/** The largest map that may be uploaded. */
const MAP_BYTES = 64 * MIB
const PATHS = 5_000
const PATHS_PER_SIGN = 500
/** Completions of the attacker at the same time. */
const CONNECTIONS = 8

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

let slug: string
beforeEach(async () => {
  slug = await service.attacker.builds.register(randomBytes(8).toString('hex'))
})

it('completions that name one large map under many paths by its MD5 take no other one its place', async () => {
  const { builds } = service.attacker
  const map = { path: 'a.js.map', bytes: mapOf(slug, MAP_BYTES) }
  await builds.upload(slug, [map])
  expect(await builds.complete(slug, [entryOf(map)])).toMatchObject({ status: 200 })
  const maps = Array.from({ length: PATHS }, (_, i) => ({ path: `${i}.js.map`, bytes: map.bytes }))
  const hashes = new Array<string>(PATHS_PER_SIGN).fill(digestOf(map.bytes))
  for (let at = 0; at < PATHS; at += PATHS_PER_SIGN) {
    await builds.sign(slug, maps.slice(at, at + PATHS_PER_SIGN), hashes)
  }
  const md5 = digestOf(map.bytes, 'md5')
  await attackWith(maps.map(({ path }) => ({ ...entryOf({ path, bytes: Buffer.alloc(0) }), hash: md5 })))
})

it('completions that are refused again and again take no other one its place', async () => {
  const maps = Array.from({ length: 4 }, (_, i) => ({ path: `${i}.js.map`, bytes: mapOf(`${slug}${i}`, MAP_BYTES) }))
  await service.attacker.builds.upload(slug, maps)
  await attackWith([...maps, { path: 'absent.js.map', bytes: Buffer.alloc(0) }].map(map => entryOf(map)))
})

/** Sends ever new completions of these files, and expects that those of another workspace are done. */
async function attackWith(files: readonly object[]): Promise<void> {
  const path = `/v3/releases/${slug}/source-maps/complete`
  expectUnharmed(
    await service.during(async () => {
      const until = Date.now() + ATTACK_MS
      await Promise.all([
        keepAttacking(CONNECTIONS, sourceFileCount => service.attacker.build(path, { files, sourceFileCount })),
        completeSmallReleases(until),
      ])
    }),
  )
}

/** Completes small releases of another workspace, and throws if one is refused. */
async function completeSmallReleases(until: number): Promise<void> {
  const { builds } = service.others[1]
  while (Date.now() < until) {
    const version = randomBytes(8).toString('hex')
    const release = await builds.register(version)
    const map = { path: 'a.js.map', bytes: mapOf(version) }
    await builds.upload(release, [map])
    const { status, body } = await builds.complete(release, [entryOf(map)])
    if (status !== 200) throw new Error(`another workspace's completion: ${status} ${JSON.stringify(body)}`)
  }
}
