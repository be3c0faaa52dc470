import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { callReceivers } from '../../../alerts/calling/call-receivers.ts'
import type { DeliveryJob } from '../../../alerts/calling/delivery-queue.ts'
import { EventHolder, holdEvents } from '../../../alerts/calling/held-events.ts'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingEvent } from '../../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../../schemas/http/alerts/example-events.ts'
import type { AlertRule, Occasion, Receiver } from '../../../schemas/records/alerts.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import {
  removeOccasions,
  type WaitingOccasion,
  waitingOccasions,
  writeOccasions,
} from '../../../shared/directory/occasions.ts'
import { commitIf } from '../../../shared/directory/transaction.ts'
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

const hold = (...held: Parameters<typeof holdEvents>) => commitIf(redis, { guards: [], commands: holdEvents(...held) })

/** Lets a rule of the workspace look at a time, and returns the ids of the events of each message that it queues. */
async function look(atMs: number, times: Pick<AlertRule, 'everyMinutes' | 'quietHours'>): Promise<string[][]> {
  const directory = createDirectory(redis)
  const { revision = 0 } = (await directory.alerts(BY.workspaceId)) ?? {}
  const rules: AlertRule[] = [{ name: BY.ruleName, kinds: ['finding.created', 'pipeline.quota'], ...times }]
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
  await hold(BY, [created], NOW + 60_000)
  // Held again after a crash, and with a later one.
  await hold(BY, [created, regressed], NOW + 90_000)
  expect(await look(NOW + 59_000, { everyMinutes: 5 })).toEqual([])
  expect(await look(NOW + 60_000, { everyMinutes: 5 })).toEqual([[created.data.id, regressed.data.id]])
  expect(await look(NOW + 61_000, { everyMinutes: 5 })).toEqual([])
  expect(await holder.lastMs(BY)).toBe(NOW + 60_000)
})

it('holds them longer while the rule is quiet', async () => {
  await hold(BY, [created], NOW)
  const quietHours = { from: '11:00', to: '13:00', zone: 'UTC' }
  expect(await look(NOW, { quietHours })).toEqual([])
  expect(await look(NOW + 3_599_000, { quietHours })).toEqual([])
  expect(await look(NOW + 3_600_000, { quietHours })).toEqual([[created.data.id]])
})

it('drops the events of a rule or a receiver that is gone', async () => {
  await hold({ ...BY, ruleName: 'gone' }, [created], NOW)
  await hold({ ...BY, receiverId: newId('rcv') }, [created], NOW)
  expect(await look(NOW, {})).toEqual([])
  expect(await redis.keys('*held*')).toEqual([])
})

it('looks at the same occasions after a crash, although others were added, so that messages keep their ids', async () => {
  const occasion = (i: number): Occasion => ({
    ...{ id: `evt_${'a'.repeat(25)}${'abcdefgh'[i]}`, kind: 'finding.created', findingId: `fnd_${'a'.repeat(26)}` },
    ...{ workspaceId: BY.workspaceId, at: '2026-11-21T10:00:00Z' },
  })
  const add = (i: number) => commitIf(redis, { guards: [], commands: writeOccasions([occasion(i)]) })
  const ids = (found: readonly WaitingOccasion[]) => found.map(each => each.occasion.id)
  await add(0)
  const first = await waitingOccasions(redis, 100)
  // Killed before they were removed.
  await add(1)
  expect(ids(await waitingOccasions(redis, 100))).toEqual(ids(first))
  await removeOccasions(redis, first, holdEvents(BY, [created], NOW))
  expect(ids(await waitingOccasions(redis, 100))).toEqual([occasion(1).id])
  expect(await holder.due(NOW)).toMatchObject([{ ...BY, events: [created] }])
})

it('calls for other workspaces while one cannot be described, whose occasions wait', async () => {
  const found: Occasion = {
    ...{ id: `evt_${'b'.repeat(26)}`, kind: 'finding.created', findingId: `fnd_${'a'.repeat(26)}` },
    ...{ workspaceId: newId('ws'), at: '2026-11-21T10:00:00Z' },
  }
  const measured: Occasion = {
    ...{ id: `evt_${'c'.repeat(26)}`, kind: 'pipeline.quota', ruleName: BY.ruleName, resolved: false },
    ...{ workspaceId: BY.workspaceId, at: '2026-11-21T10:00:00Z' },
    measured: { what: 'refused requests', value: 400, threshold: 1, unit: '', minutes: 5 },
  }
  const rules: AlertRule[] = [{ name: BY.ruleName, kinds: ['finding.created'] }]
  const author = { by: null, now: NOW }
  const receivers = [RECEIVER]
  await createDirectory(redis).replaceAlerts({ workspaceId: found.workspaceId, revision: 0, receivers, rules }, author)
  await commitIf(redis, { guards: [], commands: writeOccasions([found, measured]) })
  // There is no ClickHouse, which only the finding needs.
  await expect(look(NOW, {})).rejects.toThrow()
  expect(queued.flatMap(({ events }) => events.map(({ data }) => data.id))).toEqual([measured.id])
  expect((await waitingOccasions(redis, 100)).map(({ occasion }) => occasion)).toEqual([found])
})
