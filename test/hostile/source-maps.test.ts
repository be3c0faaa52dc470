import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, it } from 'vitest'
import { entryOf, type NamedMap } from '../support/clients/release-client.ts'
import { keepAttacking, PROTOBUF } from '../support/hostile/attacker.ts'
import { spanWith } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

const MIB = 1024 * 1024
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

it.each(Object.entries(HOSTILE_MAPS))('a source map of %s ends no worker', async (_, make) => {
  const map = { path: 'a.js.map', bytes: make() }
  expectUnharmed(
    await service.during(async () => {
      await release([map])
      await keepAttacking(2, () => throwFrom('https://x.test/a.js', 1))
    }),
  )
})

it('maps whose sources take long to parse take no other workspace its turn', async () => {
  const maps = Array.from({ length: 20 }, (_, i) => ({ path: `${i}.js.map`, bytes: slowSource(i) }))
  expectUnharmed(
    await service.during(async () => {
      await release(maps)
      await keepAttacking(4, i => throwFrom(`https://x.test/${i % 20}.js`, 1))
    }),
  )
})

async function release(maps: readonly NamedMap[]): Promise<void> {
  const { builds } = service.attacker
  const slug = await builds.register(version)
  await builds.upload(slug, maps)
  // The service may refuse the maps here already.
  await builds.complete(
    slug,
    maps.map(map => entryOf(map, { chunkUrl: `https://x.test/${map.path.replace(/\.map$/, '')}` })),
  )
}

/** Sends an exception, with a new fingerprint each time, whose top frame is in this script. */
function throwFrom(script: string, line: number): Promise<number | string> {
  const type = `E${randomBytes(6).toString('hex')}`
  const body = spanWith({
    version,
    exception: { type, message: 'x', stacktrace: `${type}: x\n    at f (${script}:${line}:1)` },
  })
  return service.attacker.post('/drain/v1/traces', body, PROTOBUF)
}

/** Makes a map whose source has nested arrow functions with type arguments, which a parser tries in several ways. */
function slowSource(seed: number): Buffer {
  const depth = 30
  const source = `const a${seed} = ${'(a = <T,>(b = '.repeat(depth)}1${') => 1) => 1'.repeat(depth)}\n`.repeat(200)
  return Buffer.from(
    JSON.stringify({ version: 3, names: ['f'], sources: [`${seed}.tsx`], sourcesContent: [source], mappings: 'AAAAA' }),
  )
}
