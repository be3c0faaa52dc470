import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { GZIPPED, keepAttacking, sendAll } from '../support/hostile/attacker.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { listObjects } from '../support/oracles/list-objects.ts'
import { until } from '../support/until.ts'

/**
 * More than 131,072 declared maps with paths of 1,000 bytes take: 8 GiB of maps that count as 64 KiB each
 * (docs/api/releases.md#sign). All that the attack sends would take 290 MiB.
 */
const DECLARED_BYTES = 230 * MIB
/** Not run again after a failure: the second run would find the room used up, and pass. */
const ONCE = { retry: 0 }

let service: SmallService
let redis: Redis
beforeAll(async () => {
  service = await startSmallService({ redisMaxMemory: '400mb' })
  redis = new Redis(service.stack.services.redisUrl)
})
afterAll(async () => {
  redis?.disconnect()
  await service?.stop()
})

const text = (length: number) => randomBytes(length / 2).toString('hex')

it('releases with as much metadata as a request may have do not fill Redis', ONCE, async () => {
  await expectGrowth(8 * MIB, () =>
    keepAttacking(16, () =>
      service.attacker.build('/v3/releases', { version: text(40), metadata: { a: text(250_000) } }),
    ),
  )
})

it('declared maps with long paths do not fill Redis', ONCE, async () => {
  const files = () => Array.from({ length: 200 }, () => ({ path: `${text(1_000)}.js.map`, size: 100, hash: text(64) }))
  await expectGrowth(DECLARED_BYTES, async () => {
    const { builds } = service.attacker
    // A release has a bound of its own.
    const slugs = [await builds.register(text(40)), await builds.register(text(40))]
    await sendAll(900, 16, i =>
      service.attacker.build(`/v3/releases/${slugs[i % 2]}/source-maps/sign`, { files: files() }),
    )
  })
})

it('requests that cannot be decoded leave Redis soon, many in one object', async () => {
  // The form of gzip, which the edge can see, around bytes that are none.
  const body = Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), randomBytes(8 * KIB), Buffer.from([0, 0, 1, 0])])
  const { attacker, stack } = service
  const before = await usedBytes()
  let accepted = 0
  const report = await service.during(() =>
    keepAttacking(64, async () => {
      if ((await attacker.post('/drain/v1/logs', body, GZIPPED)) === 200) accepted++
    }),
  )
  expectUnharmed(report)
  await until('the dead letters to leave Redis', async () => (await usedBytes()) - before < 2 * MIB, {
    deadlineMs: 10_000 / report.machineShare,
  })
  const objects = await listObjects(stack.services.s3, `dead-letters/${attacker.tenant.workspaceId}/`)
  console.log(`${accepted} dead letters are ${objects.length} objects`)
  // An object each would be 240 a second.
  expect(objects.length).toBeLessThan(accepted / 4)
})

/** Runs an attack, and expects that no client is refused and that Redis does not grow by more than this. */
async function expectGrowth(limitBytes: number, attack: () => Promise<void>): Promise<void> {
  const before = await usedBytes()
  let growth = 0
  const report = await service.during(async () => {
    await attack()
    growth = (await usedBytes()) - before
  })
  console.log(`Redis has grown by ${(growth / MIB).toFixed(1)} MiB`)
  expectUnharmed(report)
  expect(growth).toBeLessThan(limitBytes)
}

async function usedBytes(): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
}
