import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { entryOf, type NamedMap } from '../support/clients/release-client.ts'
import { type Attacker, keepAttacking, PROTOBUF } from '../support/hostile/attacker.ts'
import { spanWith } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { casesOf } from '../support/length.ts'
import { until } from '../support/until.ts'

const MAP_BYTES = 64 * MIB

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

let version: string
beforeEach(() => {
  version = randomBytes(8).toString('hex')
})

/** Fills a text of `{"version":3…` up to 64 MiB with copies of `filling`. */
function mapFilledWith(filling: string, head: string, tail: string): Buffer {
  const count = Math.floor((MAP_BYTES - head.length - tail.length) / filling.length)
  return Buffer.concat([Buffer.from(head), Buffer.alloc(count * filling.length, filling), Buffer.from(tail)])
}

const HOSTILE_MAPS: Readonly<Record<string, () => Buffer>> = {
  'millions of empty objects': () => mapFilledWith('{},', '{"version":3,"mappings":"AAAA","sources":[', '"a"]}'),
  'millions of empty arrays': () =>
    mapFilledWith('[],', '{"version":3,"mappings":"AAAA","names":[', '0],"sources":["a"]}'),
  'millions of segments': () =>
    mapFilledWith('AAAA,', '{"version":3,"names":[],"sources":["a.ts"],"mappings":"', 'AAAA"}'),
  'millions of lines': () =>
    mapFilledWith('AAAA;', '{"version":3,"names":[],"sources":["a.ts"],"mappings":"', 'AAAA"}'),
}

it.each(casesOf(HOSTILE_MAPS))('a source map of %s ends no worker', async (_, make) => {
  const map = { path: 'a.js.map', bytes: make() }
  expectUnharmed(
    await service.during(async () => {
      await release(service.attacker, [map])
      await keepAttacking(2, () => throwFrom(service.attacker, 'https://x.test/a.js'))
      // Less than the deadline of one map.
      await expectOtherStackResolved(20_000)
    }),
  )
})

it('maps whose sources take long to parse take no other workspace its turn', async () => {
  const maps = Array.from({ length: 20 }, (_, i) => ({ path: `${i}.js.map`, bytes: slowSource(i) }))
  expectUnharmed(
    await service.during(async () => {
      await release(service.attacker, maps)
      await keepAttacking(4, i => throwFrom(service.attacker, `https://x.test/${i % 20}.js`))
      // A stack looks for functions for at most five seconds, and workspaces take turns (docs/api/releases.md#symbolication).
      await expectOtherStackResolved(20_000)
    }),
  )
})

async function release({ builds }: Attacker, maps: readonly NamedMap[]): Promise<void> {
  const slug = await builds.register(version)
  await builds.upload(slug, maps)
  // The service may refuse the maps here already.
  await builds.complete(
    slug,
    maps.map(map => entryOf(map, { chunkUrl: `https://x.test/${map.path.replace(/\.map$/, '')}` })),
  )
}

/** Sends an exception, with a new fingerprint each time, whose top frame is in this script. */
function throwFrom(sender: Attacker, script: string): Promise<number | string> {
  const type = `E${randomBytes(6).toString('hex')}`
  const body = spanWith({
    version,
    exception: { type, message: 'x', stacktrace: `${type}: x\n    at f (${script}:1:1)` },
  })
  return sender.post('/drain/v1/traces', body, PROTOBUF)
}

/** Lets another workspace release a map and throw an exception, and expects that its stack is resolved soon. */
async function expectOtherStackResolved(deadlineMs: number): Promise<void> {
  const other = service.others[1]
  const map = JSON.stringify({ version: 3, names: [], sources: [`${version}.ts`], mappings: 'AAAA' })
  await release(other, [{ path: 'b.js.map', bytes: Buffer.from(map) }])
  await throwFrom(other, 'https://x.test/b.js')
  const query = `SELECT count() AS n FROM finding_frames WHERE workspace_id = '${other.tenant.workspaceId}'
    AND service_version = '${version}' AND resolved_frame_count > 0`
  await until(
    'the stack of another workspace is resolved',
    async () => {
      const result = await service.clickhouse.query({ query, format: 'JSONEachRow' })
      return Number((await result.json<{ n: string }>())[0]?.n) > 0
    },
    { deadlineMs },
  )
}

/** Makes a map of a few hundred bytes whose source takes a parser a minute: it tries each nested arrow function in two ways. */
function slowSource(seed: number): Buffer {
  const source = `${'f<T>(x=<T>(y)=>'.repeat(20)}${seed}`
  return Buffer.from(
    JSON.stringify({ version: 3, names: ['f'], sources: [`${seed}.ts`], sourcesContent: [source], mappings: 'AAAAA' }),
  )
}
