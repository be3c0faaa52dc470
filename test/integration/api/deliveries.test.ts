import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { keepAttempt } from '../../../alerts/calling/attempts.ts'
import { type DeliveryQueue, openDeliveryQueue } from '../../../alerts/calling/delivery-queue.ts'
import type { DeliveriesAnswer, DeliveryAnswer } from '../../../schemas/http/alerts/deliveries.ts'
import type { Attempt } from '../../../schemas/records/alerts.ts'
import { exampleDelivery } from '../../support/alerts/example-deliveries.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`
const WORKSPACE = 'ws_1'
const FAILED = { at: '2026-11-21T10:00:00.000Z', attempt: 1, result: 'failed', status: 503, durationMs: 5 } as const
const DELIVERY = exampleDelivery({ workspaceId: WORKSPACE })

let redis: Redis
let queue: DeliveryQueue
let api: TestApi
let bearer: string

beforeAll(async () => {
  redis = new Redis(redisUrl)
  queue = openDeliveryQueue(redis)
  api = await startApi({ ...services, redisUrl }, 'default')
  bearer = await signToken()
})
afterAll(async () => {
  await api?.stop()
  await queue?.close()
  redis?.disconnect()
})
beforeEach(async () => {
  await redis.flushdb()
  await putWorkspace(redisUrl, { id: WORKSPACE, slug: 'acme' })
})

const ask = (operation: string, body?: object) => call(api.baseUrl, operation, { bearer, body })
const read = async (id = DELIVERY.id) => ask(`GET /v3/alerts/deliveries/${id}`)
const replay = async (id = DELIVERY.id) => ask(`POST /v3/alerts/deliveries/${id}/replay`, {})

function attempted(more: Partial<Attempt> = {}): Promise<void> {
  const { id: deliveryId, receiverId, ruleName } = DELIVERY
  const events = DELIVERY.events.map(({ type, data }) => ({ id: data.id, type, findingId: 'fnd_1' }))
  const own = { deliveryId, receiverId, ruleName, receiverName: 'on-call', events }
  return keepAttempt(redis, WORKSPACE, { ...FAILED, ...own, ...more })
}

/** Leaves a delivery as the deliverer does after its last attempt. */
async function moveTo(set: 'failed' | 'completed' | 'delayed', score = 1): Promise<void> {
  const keyOf = (part: string) => `penstock:{directory}:upkeep:deliveries:${part}`
  await redis.lrem(keyOf('wait'), 1, DELIVERY.id)
  await redis.zadd(keyOf(set), score, DELIVERY.id)
  if (set !== 'delayed') await redis.hset(keyOf(DELIVERY.id), 'finishedOn', 1)
}

it('shows the message of a delivery, its state and its attempts, the latest first', async () => {
  await queue.add([DELIVERY])
  expect(await read()).toMatchObject({ status: 200, body: { state: 'waiting', events: DELIVERY.events, attempts: [] } })
  await attempted({ nextAttemptAt: '2026-11-21T10:00:05.000Z' })
  await attempted({ attempt: 2 })
  await moveTo('failed')
  const { deliveryId, receiverId, receiverName, ruleName, state, attempts } = (await read()).body as DeliveryAnswer
  expect({ deliveryId, receiverId, receiverName, ruleName, state }).toEqual({
    ...{ deliveryId: DELIVERY.id, receiverId: DELIVERY.receiverId, receiverName: 'on-call', ruleName: 'all' },
    state: 'parked',
  })
  expect(attempts.map(({ attempt }) => attempt)).toEqual([2, 1])
})

it('knows a delivery by its attempts once its message is not kept, and cannot send it again', async () => {
  await attempted()
  expect(await read()).toMatchObject({ status: 200, body: { state: 'parked', events: [], attempts: [FAILED] } })
  expect(await replay()).toMatchObject({ status: 404, body: { message: expect.stringContaining('not kept any more') } })
})

it('shows when a delivery is attempted again, and sends it now if it is replayed', async () => {
  await queue.add([DELIVERY])
  const nextMs = Date.now() + 600_000
  await redis.hset(`penstock:{directory}:upkeep:deliveries:${DELIVERY.id}`, 'progress', nextMs)
  await moveTo('delayed', nextMs * 4_096)
  expect((await read()).body).toMatchObject({ state: 'waiting', nextAttemptAt: new Date(nextMs).toISOString() })
  expect(await replay()).toMatchObject({ status: 200, body: { state: 'waiting' } })
  expect((await read()).body).not.toHaveProperty('nextAttemptAt')
  expect(await redis.lrange('penstock:{directory}:upkeep:deliveries:wait', 0, -1)).toEqual([DELIVERY.id])
})

it('queues a parked or ended delivery again, once, and none that was delivered', async () => {
  await queue.add([DELIVERY])
  await attempted({ result: 'refused' })
  await moveTo('failed')
  expect((await read()).body).toMatchObject({ state: 'ended' })
  const both = await Promise.all([replay(), replay()])
  expect(both).toMatchObject([
    { status: 200, body: { state: 'waiting' } },
    { status: 200, body: { state: 'waiting' } },
  ])
  expect(await redis.lrange('penstock:{directory}:upkeep:deliveries:wait', 0, -1)).toEqual([DELIVERY.id])
  await moveTo('completed')
  expect((await read()).body).toMatchObject({ state: 'delivered' })
  expect(await replay()).toMatchObject({ status: 409 })
})

it('lists attempts with the state of their delivery, for a finding or a receiver', async () => {
  const [first, second] = [`fnd_${'a'.repeat(26)}`, `fnd_${'b'.repeat(26)}`]
  const about = (findingId: string) => [{ id: 'evt_1', type: 'finding.created', findingId }]
  await attempted({ nextAttemptAt: '2026-11-21T10:00:05.000Z', events: about(first) })
  await attempted({ deliveryId: 'other', receiverName: 'team', events: about(second), result: 'gone' })
  await attempted({ attempt: 10, events: about(first) })
  const list = async (query: string) => {
    const { attempts } = (await ask(`GET /v3/alerts/deliveries?${query}`)).body as DeliveriesAnswer
    return attempts.map(({ deliveryId, attempt, state }) => [deliveryId, attempt, state])
  }
  const own = [
    [DELIVERY.id, 10, 'parked'],
    [DELIVERY.id, 1, 'parked'],
  ]
  expect(await list('')).toEqual([own[0], ['other', 1, 'ended'], own[1]])
  expect(await list(`findingId=${first}`)).toEqual(own)
  expect(await list(`findingId=${first}&receiver=team`)).toEqual([])
  expect(await list('receiver=on-call&limit=1')).toEqual([own[0]])
  expect(await ask('GET /v3/alerts/deliveries?limit=1001')).toMatchObject({ status: 400 })
})

it('shows and replays no delivery of another workspace, and knows no other keys of the queue', async () => {
  const theirs = exampleDelivery({ workspaceId: 'ws_2', receiverId: 'rcv_00000000000000000000' })
  await queue.add([theirs, DELIVERY])
  for (const id of [theirs.id, 'wait', 'meta', 'events', `${DELIVERY.id}:lock`]) {
    expect(await read(encodeURIComponent(id)), id).toMatchObject({ status: 404 })
    expect(await replay(encodeURIComponent(id)), id).toMatchObject({ status: 404 })
  }
})
