import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GZIPPED, keepAttacking, PROTOBUF } from '../support/hostile/attacker.ts'
import { failedSpans, spanWith } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

interface Finding {
  readonly type: string
  readonly lastSeenAt: string
}

it('an occurrence of the year 2554 was last seen today', async () => {
  const exception = { type: 'CartError', message: 'forged' }
  const body = spanWith({ exception, exceptionTimeUnixNano: 2n ** 64n - 1n })
  await service.attacker.post('/drain/v1/traces', body, PROTOBUF)
  const forged = await until('the forged occurrence is stored', async () =>
    (await findings()).find(({ type }) => type === 'CartError'),
  )
  // Later occurrences replace its message when this time has passed.
  expect(Date.parse(forged.lastSeenAt)).toBeLessThan(Date.now() + 600_000)
})

it('thousands of made-up findings a second harm no other client', async () => {
  const bodies = Array.from({ length: 10 }, (_, i) => gzipSync(failedSpans(10_000, `y${i}`)))
  const { attacker } = service
  expectUnharmed(
    await service.during(() =>
      keepAttacking(8, i => attacker.post('/drain/v1/traces', bodies[i % bodies.length] as Buffer, GZIPPED)),
    ),
  )
})

async function findings(): Promise<Finding[]> {
  const response = await fetch(`${service.attacker.apiUrl}/v3/findings`, {
    headers: { authorization: `Bearer ${service.attacker.tenant.sessionToken}` },
  })
  return ((await response.json()) as { findings: Finding[] }).findings
}
