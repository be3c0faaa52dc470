import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { keepAttempt, lastAttempts } from '../../../alerts/calling/attempts.ts'
import { type DeliveryQueue, openDeliveryQueue } from '../../../alerts/calling/delivery-queue.ts'
import { eraseAlerts } from '../../../alerts/calling/erase-alerts.ts'
import { EventHolder, holdEvents } from '../../../alerts/calling/held-events.ts'
import type { FindingEvent } from '../../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../../schemas/http/alerts/example-events.ts'
import type { Occasion } from '../../../schemas/records/alerts.ts'
import { waitingOccasions, writeOccasions } from '../../../shared/directory/occasions.ts'
import { commitIf } from '../../../shared/directory/transaction.ts'
import { exampleDelivery } from '../../support/alerts/example-deliveries.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const WORKSPACE = 'ws_1'
const NAMING = { phrases: ['Zorana Petrova'], ids: new Set(['erased/session']) }

let redis: Redis
let queue: DeliveryQueue

beforeAll(() => {
  redis = new Redis(`${sharedServices().redisUrl}/14`)
  queue = openDeliveryQueue(redis)
})
afterAll(async () => {
  await queue?.close()
  redis?.disconnect()
})
beforeEach(() => redis.flushdb())

const erase = () => eraseAlerts({ redis, queue, onStep: async () => {} }, WORKSPACE, NAMING)

const EXAMPLE = EXAMPLE_EVENTS['finding.created'] as FindingEvent

function eventOf(message: string, sessionId = 'other'): FindingEvent {
  const { finding, recording } = EXAMPLE.data
  return {
    ...EXAMPLE,
    data: {
      ...EXAMPLE.data,
      finding: { ...finding, message },
      recording: { at: recording?.at ?? '', sessionId },
      links: { finding: EXAMPLE.data.links.finding },
    },
  }
}
const OF_NAME = eventOf('no cart of zorana petrova')
const OF_SESSION = eventOf('no cart', 'erased/session')
const OTHER = eventOf('no cart')

it('removes deliveries that name the person in every state, and the events that do so of messages about several', async () => {
  const id = (i: number) => `msg_${'a'.repeat(25)}${'abcdefgh'[i]}`
  const events = [[OF_NAME], [OF_SESSION], [OTHER], [OTHER, OF_NAME, OF_SESSION], [OF_NAME], [OF_NAME]] as const
  await queue.add(
    events.map((own, i) =>
      exampleDelivery({ id: id(i), events: [...own] as [FindingEvent], workspaceId: i === 5 ? 'ws_2' : WORKSPACE }),
    ),
  )
  const keyOf = (part: string) => `penstock:{directory}:upkeep:deliveries:${part}`
  for (const [i, set] of ['failed', 'completed', '', '', 'delayed'].entries()) {
    if (set === '') continue
    await redis.lrem(keyOf('wait'), 1, id(i))
    await redis.zadd(keyOf(set), Date.now() * 4_096, id(i))
  }
  await erase()
  const left = await Promise.all(events.map((_, i) => queue.find(i === 5 ? 'ws_2' : WORKSPACE, id(i))))
  expect(left.map(kept => kept?.delivery.events)).toEqual([
    ...[undefined, undefined, [OTHER], [OTHER], undefined, [OF_NAME]],
  ])
})

it('removes events that are held, and keeps those of others', async () => {
  const holder = new EventHolder(redis)
  const by = (workspaceId: string) => ({ workspaceId, receiverId: 'rcv_1', ruleName: 'all' })
  for (const workspaceId of [WORKSPACE, 'ws_2']) {
    const commands = holdEvents(by(workspaceId), [OF_NAME, OTHER, OF_SESSION], 1)
    await commitIf(redis, { guards: [], commands })
  }
  await erase()
  const held = await holder.due(2)
  expect(held.find(({ workspaceId }) => workspaceId === WORKSPACE)?.events).toEqual([OTHER])
  expect(held.find(({ workspaceId }) => workspaceId === 'ws_2')?.events).toHaveLength(3)
})

it('removes occasions and answers of receivers that name the person', async () => {
  const occasionOf = (text: string, i: number, workspaceId = WORKSPACE): Occasion => ({
    ...{ id: `evt_${'a'.repeat(25)}${'abcdefgh'[i]}`, workspaceId, at: '2026-11-21T10:00:00Z', findingId: 'fnd_1' },
    kind: 'finding.commented',
    entry: {
      id: 'act_00000000000000000000',
      createdAt: '2026-11-21T10:00:00.000Z',
      by: null,
      action: 'commented',
      text,
    },
  })
  const occasions = [
    occasionOf('ask Zorana Petrova', 0),
    occasionOf('ask me', 1),
    occasionOf('ask Zorana Petrova', 2, 'ws_2'),
  ]
  await commitIf(redis, { guards: [], commands: writeOccasions(occasions) })
  const attempt = {
    ...{
      deliveryId: 'd',
      at: '2026-11-21T10:00:00.000Z',
      receiverId: 'r',
      receiverName: 'r',
      ruleName: 'all',
      events: [],
    },
    ...{ attempt: 1, result: 'failed' as const, durationMs: 1 },
  }
  for (const answer of ['Zorana Petrova?', 'no']) await keepAttempt(redis, WORKSPACE, { ...attempt, answer })
  await erase()
  expect((await waitingOccasions(redis, 10)).map(({ occasion }) => occasion.id)).toEqual([
    ...[occasions[1]?.id, occasions[2]?.id],
  ])
  expect((await lastAttempts(redis, WORKSPACE, 10)).map(({ answer }) => answer)).toEqual(['no'])
})
