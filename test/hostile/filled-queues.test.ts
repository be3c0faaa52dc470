import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { entryOf, mapOf } from '../support/clients/release-client.ts'
import { GZIPPED, keepAttacking } from '../support/hostile/attacker.ts'
import { bareSpans } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

let service: SmallService
beforeAll(async () => {
  // Small limits, so that a few seconds of an attack reach them.
  service = await startSmallService({
    settings: { QUEUE_MAX_COST: String(64 * MIB), VERDICT_MAX_WAITING: '16' },
  })
})
afterAll(() => service?.stop())

it('exports that fill a queue are refused to their surface alone', async () => {
  // A few KB for the edge, and thousands of rows for the worker.
  const body = gzipSync(bareSpans(20_000))
  const { attacker } = service
  expectUnharmed(await service.during(() => keepAttacking(128, () => attacker.post('/drain/v1/traces', body, GZIPPED))))
  // Otherwise this test has shown nothing.
  expect(attacker.outcomes['429']).toBeGreaterThan(0)
})

it('completions that are repeated on many connections leave others a place', async () => {
  const { attacker, others } = service
  const builds = [attacker.builds, others[1].builds]
  const map = { path: 'a.js.map', bytes: mapOf('a') }
  const [attacked = '', other = ''] = await Promise.all(
    builds.map(async client => {
      const slug = await client.register(randomBytes(8).toString('hex'))
      await client.upload(slug, [map])
      return slug
    }),
  )
  const statuses: number[] = []
  expectUnharmed(
    await service.during(async () => {
      let isAttacking = true
      const completing = (async () => {
        while (isAttacking) {
          statuses.push((await others[1].builds.complete(other, [entryOf(map)])).status)
          await delay(100)
        }
      })()
      await keepAttacking(64, i => attacker.builds.complete(attacked, [entryOf(map)], 1 + (i % 64)).catch(() => {}))
      isAttacking = false
      await completing
    }),
  )
  expect(new Set(statuses)).toEqual(new Set([200]))
})
