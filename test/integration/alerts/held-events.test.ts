import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { callReceivers } from '../../../alerts/calling/call-receivers.ts'
import type { DeliveryJob } from '../../../alerts/calling/delivery-queue.ts'
import { EventHolder } from '../../../alerts/calling/held-events.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingEvent } from '../../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../../schemas/http/alerts/example-events.ts'
import type { AlertRule, Receiver } from '../../../schemas/records/alerts.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const RECEIVER: Receiver = {
  ...{ id: newId('rcv'), name: 'team', channel: 'slack', address: 'https://hooks.slack.example', sealed: 'x.y' },
  createdAt: '2026-11-21T10:00:00Z',
}
const BY = { workspaceId: newId('ws'), receiverId: RECEIVER.id, ruleName: 'new' }
const [created, regressed] = [EXAMPLE_EVENTS['finding.created'], EXAMPLE_EVENTS['finding.regressed']] as [
  FindingEvent,
  FindingEvent,
]

let redis: Redis
let holder: EventHolder
let queued: DeliveryJob[]

beforeAll(() => {
  redis = new Redis(`${sharedServices().redisUrl}/14`)
})
afterAll(() => redis?.disconnect())
beforeEach(async () => {
  await redis.flushdb()
  holder = new EventHolder(redis)
  queued = []
})

/** Lets a rule of the workspace look at a time, and returns the ids of the events of each message that it queues. */
async function look(atMs: number, times: Pick<AlertRule, 'everyMinutes' | 'quietHours'>): Promise<string[][]> {
  const directory = createDirectory(redis)
  const { revision = 0 } = (await directory.alerts(BY.workspaceId)) ?? {}
  const rules: AlertRule[] = [{ name: BY.ruleName, kinds: ['finding.created'], ...times }]
  const author = { by: null, now: NOW }
  await directory.replaceAlerts({ workspaceId: BY.workspaceId, revision, receivers: [RECEIVER], rules }, author)
  const before = queued.length
  await callReceivers({
    // Nothing waits to be described.
    clickhouse: {} as ClickHouseClient,
    ...{ redis, directory, consoleUrl: 'https://penstock.example/console/', now: () => atMs },
    queue: { add: async jobs => void queued.push(...jobs) },
    assertElected: async () => {},
  })
  return queued.slice(before).map(({ events }) => events.map(({ data }) => data.id))
}

it('holds events until they are due, and sends them in one message, each once', async () => {
  await holder.hold(BY, [created], NOW + 60_000)
  // Held again after a crash, and with a later one.
  await holder.hold(BY, [created, regressed], NOW + 90_000)
  expect(await look(NOW + 59_000, { everyMinutes: 5 })).toEqual([])
  expect(await look(NOW + 60_000, { everyMinutes: 5 })).toEqual([[created.data.id, regressed.data.id]])
  expect(await look(NOW + 61_000, { everyMinutes: 5 })).toEqual([])
  expect(await holder.lastMs(BY)).toBe(NOW + 60_000)
})

it('holds them longer while the rule is quiet', async () => {
  await holder.hold(BY, [created], NOW)
  const quietHours = { from: '11:00', to: '13:00', zone: 'UTC' }
  expect(await look(NOW, { quietHours })).toEqual([])
  expect(await look(NOW + 3_599_000, { quietHours })).toEqual([])
  expect(await look(NOW + 3_600_000, { quietHours })).toEqual([[created.data.id]])
})

it('drops the events of a rule or a receiver that is gone', async () => {
  await holder.hold({ ...BY, ruleName: 'gone' }, [created], NOW)
  await holder.hold({ ...BY, receiverId: newId('rcv') }, [created], NOW)
  expect(await look(NOW, {})).toEqual([])
  expect(await redis.keys('*held*')).toEqual([])
})
