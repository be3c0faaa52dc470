import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { encodeReplayMetadata } from '../support/clients/encode-replay-metadata.ts'
import { mapOf } from '../support/clients/release-client.ts'
import { GZIPPED, keepAttacking, PROTOBUF } from '../support/hostile/attacker.ts'
import { failedSpans, field } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { rounds } from '../support/length.ts'

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

it.each(['traces', 'logs', 'metrics'].slice(0, rounds(3)))(
  'compressed exports of 60 MiB of %s delay no other surface',
  async otlpSignal => {
    // An unknown field of a resource, so that every byte is read and nothing is stored.
    const gzipped = gzipSync(field(1, field(9, Buffer.alloc(60 * MIB, 'a'))))
    expectUnharmed(
      await service.during(() =>
        keepAttacking(64, () => service.attacker.post(`/drain/v1/${otlpSignal}`, gzipped, GZIPPED)),
      ),
    )
  },
)

it('compressed replay chunks of 90 MiB delay no other surface', async () => {
  const now = Date.now()
  const line = `{"type":3,"data":{"a":"${'a'.repeat(1_000)}"},"timestamp":${now}}\n`
  const gzipped = gzipSync(Buffer.alloc(90 * MIB - ((90 * MIB) % line.length), line))
  expectUnharmed(
    await service.during(() =>
      keepAttacking(32, i =>
        service.attacker.post(`/v3/replay/upload/${randomBytes(8).toString('hex')}`, gzipped, {
          'content-encoding': 'gzip',
          'x-replay-metadata': encodeReplayMetadata({ windowId: 'w', segmentId: i, firstTs: now, lastTs: now }),
        }),
      ),
    ),
  )
})

it('exports of thousands of findings delay no other surface', async () => {
  const bodies = Array.from({ length: 20 }, (_, i) => gzipSync(failedSpans(10_000, `${i}x`)))
  expectUnharmed(
    await service.during(() =>
      keepAttacking(16, i => service.attacker.post('/drain/v1/traces', bodies[i % bodies.length] as Buffer, GZIPPED)),
    ),
  )
})

it('whole source maps of 40 MiB fail no other request', async () => {
  const { builds } = service.attacker
  const slug = await builds.register(randomBytes(8).toString('hex'))
  const map = mapOf('a', 40 * MIB)
  expectUnharmed(
    await service.during(() => keepAttacking(3, i => builds.putSingle(slug, `${i}.js.map`, map).catch(() => {}))),
  )
})

it('exports of 19 MiB that are not compressed fail no other request', async () => {
  const body = field(1, field(9, Buffer.alloc(19 * MIB, 'a')))
  expectUnharmed(
    await service.during(() => keepAttacking(5, () => service.attacker.post('/drain/v1/traces', body, PROTOBUF))),
  )
})
