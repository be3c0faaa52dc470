import { afterAll, beforeAll, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { keepAttacking, PROTOBUF } from '../support/hostile/attacker.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { casesOf } from '../support/length.ts'

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

/** Texts of 250 KiB of JSON that are slow to validate, as the metadata of a release. */
const METADATA: Readonly<Record<string, string>> = {
  'empty objects': `[${'{},'.repeat(80 * KIB)}0]`,
  'empty arrays': `[${'[],'.repeat(80 * KIB)}0]`,
  numbers: `[${'0,'.repeat(120 * KIB)}0]`,
}

it.each(casesOf(METADATA))('metadata of %s does not stop the edge', async (_, json) => {
  const { attacker } = service
  expectUnharmed(
    await service.during(() =>
      keepAttacking(32, i => attacker.build('/v3/releases', `{"version":"${i}","metadata":{"a":${json}}}`)),
    ),
  )
})

it('a body of millions of empty fields does not stop the edge', async () => {
  const body = Buffer.alloc(20 * MIB - 64, Buffer.from([0x0a, 0]))
  const { attacker } = service
  expectUnharmed(await service.during(() => keepAttacking(4, () => attacker.post('/drain/v1/traces', body, PROTOBUF))))
})

it('a body of millions of blanks does not stop the edge', async () => {
  const body = Buffer.alloc(20 * MIB - 64, ' ')
  const { attacker } = service
  expectUnharmed(
    await service.during(() =>
      keepAttacking(4, () => attacker.post('/drain/v1/traces', body, { 'content-type': 'application/json' })),
    ),
  )
})
