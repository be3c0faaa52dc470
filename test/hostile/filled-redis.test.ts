import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { keepAttacking } from '../support/hostile/attacker.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

let service: SmallService
let redis: Redis
beforeAll(async () => {
  service = await startSmallService({ redisMaxMemory: '200mb' })
  redis = new Redis(service.stack.services.redisUrl)
})
afterAll(async () => {
  redis?.disconnect()
  await service?.stop()
})

const text = (length: number) => randomBytes(length / 2).toString('hex')

it('releases with as much metadata as a request may have do not fill Redis', async () => {
  const { attacker } = service
  expectUnharmed(
    await service.during(() =>
      keepAttacking(16, () => attacker.build('/v3/releases', { version: text(40), metadata: { a: text(250_000) } })),
    ),
  )
  await expectRoom()
})

it('releases without metadata do not fill Redis', async () => {
  const { attacker } = service
  expectUnharmed(
    await service.during(() => keepAttacking(16, () => attacker.build('/v3/releases', { version: text(200) }))),
  )
  await expectRoom()
})

it('declared maps with long paths do not fill Redis', async () => {
  const { attacker } = service
  const files = () => Array.from({ length: 200 }, () => ({ path: `${text(1_000)}.js.map`, size: 100, hash: text(64) }))
  expectUnharmed(
    await service.during(async () => {
      const slug = await attacker.builds.register(text(40))
      await keepAttacking(16, () => attacker.build(`/v3/releases/${slug}/source-maps/sign`, { files: files() }))
    }),
  )
  await expectRoom()
})

it('parts of a byte under ever new paths do not fill Redis', async () => {
  const { attacker } = service
  expectUnharmed(
    await service.during(async () => {
      const slug = await attacker.builds.register(text(40))
      await keepAttacking(32, () =>
        attacker.builds.putPart(slug, `${text(600)}.js.map`, 0, Buffer.from('{')).catch(() => {}),
      )
    }),
  )
  await expectRoom()
})

/** The attacks of this file take minutes to fill a larger Redis: what they leave must be far from its limit. */
async function expectRoom(): Promise<void> {
  const info = await redis.info('memory')
  const [used, most] = ['used_memory', 'maxmemory'].map(name =>
    Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]),
  )
  expect((used ?? 0) / (most ?? 1)).toBeLessThan(0.5)
}
