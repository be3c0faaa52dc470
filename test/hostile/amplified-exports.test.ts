import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, it } from 'vitest'
import { GZIPPED, keepAttacking } from '../support/hostile/attacker.ts'
import { bareSpans, emptyExemplars, emptyLogRecords, emptyPoints } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { casesOf } from '../support/length.ts'

const MILLION = 1_000_000

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

/** Bodies of some KB, gzipped, whose rows are up to 125 times as wide as the bytes that they are decoded from. */
const BODIES = {
  'log records without a field': { path: '/drain/v1/logs', body: () => emptyLogRecords(2 * MILLION) },
  'points without a field': { path: '/drain/v1/metrics', body: () => emptyPoints(MILLION) },
  'exemplars without a field': { path: '/drain/v1/metrics', body: () => emptyExemplars(16 * MILLION) },
  'spans without a name': { path: '/drain/v1/traces', body: () => bareSpans(MILLION) },
}

it.each(casesOf(BODIES))('small requests of many %s end no worker', async (_, { path, body }) => {
  const gzipped = gzipSync(body())
  expectUnharmed(await service.during(() => keepAttacking(40, () => service.attacker.post(path, gzipped, GZIPPED))))
})
