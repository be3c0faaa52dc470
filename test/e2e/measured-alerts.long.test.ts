import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { MeasuredEvent } from '../../schemas/http/alerts/events.ts'
import type { AlertsAnswer } from '../../schemas/http/alerts/operations.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { directoryKeys, upkeepKeys } from '../../shared/directory/record.ts'
import { type AlertsStage, PUBLIC_URL, startAlertsStage } from '../support/alerts/alerts-stage.ts'
import { until } from '../support/until.ts'

let stage: AlertsStage
let directoryRedis: Redis

beforeAll(async () => {
  stage = await startAlertsStage(['finding.created'])
  directoryRedis = new Redis(stage.stack.env.DIRECTORY_REDIS_URL ?? '')
  const { revision } = (await stage.ask('GET /v3/alerts')).body as AlertsAnswer
  const changed = await stage.ask('PUT /v3/alerts', {
    revision,
    receivers: [{ name: 'on-call', channel: 'webhook' }],
    rules: [
      { name: 'errors', kinds: ['service.errors'], errors: { percent: 50, minutes: 1, atLeast: 5 } },
      { name: 'silence', kinds: ['surface.silent'], silent: { minutes: 1 } },
    ],
  })
  expect(changed.status).toBe(200)
})
afterAll(async () => {
  directoryRedis?.disconnect()
  await stage?.stop()
})

const measured = (type: MeasuredEvent['type']) =>
  stage.events().filter((event): event is MeasuredEvent => event.type === type)

/** Spans of a service that received calls some minutes ago, all of which failed. */
function failedCalls(minutesAgo: number): object[] {
  const nano = `${Date.now() - minutesAgo * MINUTE_MS}000000`
  return Array.from({ length: 6 }, () => ({
    ...{ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), name: 'GET /cart', kind: 2 },
    ...{ startTimeUnixNano: nano, endTimeUnixNano: nano, status: { code: 2 } },
  }))
}

it('calls when the errors of a service begin and when they have ended, and for a surface that is silent', async () => {
  await stage.sendSpans(failedCalls(6))
  await until(
    'the calls are counted',
    async () => {
      const { body } = await stage.ask('GET /v3/services')
      return (body as { services: readonly unknown[] }).services.length > 0
    },
    { deadlineMs: 240_000 },
  )
  // The minutes that it measures again are those in which the calls failed.
  const [workspaceId = ''] = await directoryRedis.smembers(directoryKeys.alerting)
  const key = upkeepKeys.measured(workspaceId)
  await until('both rules are measured', async () => (await directoryRedis.hlen(key)) === 2, { deadlineMs: 60_000 })
  for (const [field, text] of Object.entries(await directoryRedis.hgetall(key)))
    await directoryRedis.hset(key, field, JSON.stringify({ ...JSON.parse(text), untilMs: Date.now() - 10 * MINUTE_MS }))
  const [begun, ended] = await until(
    'both calls',
    () => {
      const [first, second] = measured('service.errors')
      return first && second && ([first, second] as const)
    },
    { deadlineMs: 120_000 },
  )
  expect(begun.data).toMatchObject({
    ...{ resolved: false, service: 'shop' },
    measured: { value: 100, threshold: 50, unit: '%', minutes: 1 },
    links: { chart: `${PUBLIC_URL}/console/services/shop` },
  })
  expect(ended.data).toMatchObject({ resolved: true, service: 'shop' })
  expect(Date.parse(ended.timestamp) - Date.parse(begun.timestamp)).toBe(5 * MINUTE_MS)
  const [silent] = await until(
    'the surface is silent',
    () => {
      const events = measured('surface.silent')
      return events.length > 0 ? events : undefined
    },
    { deadlineMs: 240_000 },
  )
  expect(silent?.data).toMatchObject({ resolved: false, surface: { name: expect.any(String) }, measured: { value: 0 } })
})
