import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { lastAttempts } from '../../../alerts/calling/attempts.ts'
import { type DeliverDeps, startDeliveries } from '../../../alerts/calling/deliver.ts'
import { type DeliveryJob, type DeliveryQueue, openDeliveryQueue } from '../../../alerts/calling/delivery-queue.ts'
import { OrderOfFindings } from '../../../alerts/calling/order-of-findings.ts'
import { sealTarget } from '../../../alerts/calling/targets.ts'
import { ActLinks } from '../../../alerts/delivery/act-links.ts'
import { parseAllowedReceivers } from '../../../alerts/delivery/receiver-address.ts'
import { Sealing } from '../../../alerts/delivery/sealing.ts'
import { createWebhookSecret } from '../../../alerts/delivery/standard-webhooks.ts'
import type { FindingEvent } from '../../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../../schemas/http/alerts/example-events.ts'
import type { Receiver } from '../../../schemas/records/alerts.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { base32 } from '../../../shared/ids/base32.ts'
import { exampleDelivery } from '../../support/alerts/example-deliveries.ts'
import { type HostileReceiver, startHostileReceiver } from '../../support/receivers/hostile-receiver.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../support/receivers/webhook-receiver.ts'
import { DELIVERY_KEY } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

/** The table of retries and the hour of the order, made smaller. */
const RETRY_MS = 100
const ATTEMPTS = 10
const ORDER_KEPT_MS = 600

const redisUrl = `${sharedServices().redisUrl}/14`
const sealing = new Sealing({ key: DELIVERY_KEY })

let redis: Redis
let blocking: Redis
let queue: DeliveryQueue
let willing: WebhookReceiver
const hostile: HostileReceiver[] = []
let deliveries: ReturnType<typeof startDeliveries> | undefined

beforeAll(async () => {
  redis = new Redis(redisUrl)
  blocking = new Redis(redisUrl, { maxRetriesPerRequest: null })
  queue = openDeliveryQueue(redis)
  willing = await startWebhookReceiver()
})
afterAll(async () => {
  await queue?.close()
  await willing?.stop()
  for (const receiver of hostile) await receiver.stop()
  redis?.disconnect()
  blocking?.disconnect()
})
beforeEach(() => redis.flushdb())
afterEach(() => deliveries?.stop())

function start(): void {
  const parsed = parseAllowedReceivers('127.0.0.0/8')
  if (!parsed.ok) throw new Error('the addresses are refused')
  const deps: DeliverDeps = {
    ...{ redis, blocking, sealing, allowed: parsed.allowed, mail: undefined, directory: createDirectory(redis) },
    ...{ logger: pino({ level: 'silent' }), lockMs: 5_000, stalledCheckMs: 1_000, now: Date.now },
    actLinks: new ActLinks({ key: DELIVERY_KEY }, 'https://penstock.example'),
    onActive() {},
    onAttempt() {},
    nextAttemptAtMs: ({ attempts, failedAtMs }) => (attempts < ATTEMPTS ? failedAtMs + RETRY_MS : undefined),
    orderKeptMs: ORDER_KEPT_MS,
  }
  deliveries = startDeliveries(deps)
}

/** Adds a workspace with a webhook at this address. */
async function workspaceCalling(url: string): Promise<{ readonly workspaceId: string; readonly receiverId: string }> {
  const [workspaceId, id] = [newId('ws'), newId('rcv')]
  const target = { channel: 'webhook' as const, url, secrets: [createWebhookSecret()] }
  const receiver: Receiver = {
    ...{ id, name: 'hook', channel: 'webhook', address: url, createdAt: '2026-11-21T10:00:00Z' },
    sealed: sealTarget(sealing, workspaceId, id, target),
  }
  const author = { by: null, now: Date.now() }
  await createDirectory(redis).replaceAlerts({ workspaceId, revision: 0, receivers: [receiver], rules: [] }, author)
  return { workspaceId, receiverId: id }
}

let events = 0
/** Queues an event about a finding, behind earlier ones. */
async function deliver(to: { workspaceId: string; receiverId: string }, finding: string): Promise<DeliveryJob> {
  const number = Buffer.alloc(17)
  number.writeUInt32BE(++events, 12)
  const example = EXAMPLE_EVENTS['finding.created'] as FindingEvent
  const { data } = example
  const own = { ...data, id: `evt_${base32(number, 26)}`, finding: { ...data.finding, id: finding } }
  const delivery = exampleDelivery(to, { ...example, data: own })
  await new OrderOfFindings(redis).join([delivery], Date.now())
  await queue.add([delivery])
  return delivery
}

const idsAt = (receiver: WebhookReceiver) => receiver.received.map(({ headers }) => headers['webhook-id'])
const stateOf = async ({ workspaceId, id }: DeliveryJob) => (await queue.find(workspaceId, id))?.state
const FINDING = `fnd_${'a'.repeat(26)}`
const OTHER = `fnd_${'b'.repeat(26)}`

it('keeps the order of a finding for a time while a receiver is down, then lets later events pass, and parks the first', async () => {
  willing.answers.set('/down', 503)
  const to = await workspaceCalling(`${willing.url}/down`)
  const [first, second, other] = [await deliver(to, FINDING), await deliver(to, FINDING), await deliver(to, OTHER)]
  const startedMs = Date.now()
  start()
  const attemptsOf = async ({ id }: DeliveryJob) =>
    (await lastAttempts(redis, to.workspaceId, 1_000)).filter(({ deliveryId }) => deliveryId === id)
  await until('all of them are parked', async () =>
    (await Promise.all([first, second, other].map(stateOf))).every(state => state === 'failed'),
  )
  const [ofFirst, ofSecond, ofOther] = await Promise.all([first, second, other].map(attemptsOf))
  expect(ofFirst?.map(({ attempt }) => attempt)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
  expect(ofFirst?.[0]).not.toHaveProperty('nextAttemptAt')
  expect(ofFirst?.[9]).toHaveProperty('nextAttemptAt')
  // The event of another finding did not wait, and that of the same one did for as long as the order is kept.
  expect(Date.parse(ofOther?.at(-1)?.at ?? '') - startedMs).toBeLessThan(ORDER_KEPT_MS)
  expect(Date.parse(ofSecond?.at(-1)?.at ?? '') - startedMs).toBeGreaterThanOrEqual(ORDER_KEPT_MS - 100)
  willing.answers.clear()

  // Sent again by hand, it has the same id.
  await queue.replay(to.workspaceId, first.id, Date.now())
  await until('it is delivered', async () => (await stateOf(first)) === 'delivered')
  expect(idsAt(willing).at(-1)).toBe(first.id)
  expect((await attemptsOf(first))[0]).toMatchObject({ attempt: 11, result: 'delivered' })
})

it('sends the events of a finding in their order once its receiver is back', async () => {
  willing.answers.set('/back', 503)
  const to = await workspaceCalling(`${willing.url}/back`)
  const queued = [await deliver(to, FINDING), await deliver(to, FINDING)]
  start()
  await until('an attempt has failed', () => idsAt(willing).includes(queued[0]?.id ?? ''))
  willing.answers.clear()
  await until('both are delivered', async () =>
    (await Promise.all(queued.map(stateOf))).every(state => state === 'delivered'),
  )
  const own = idsAt(willing).filter(id => queued.some(delivery => delivery.id === id))
  expect(own.at(-1)).toBe(queued[1]?.id)
  expect(own.slice(0, -1).every(id => id === queued[0]?.id)).toBe(true)
})

it('disables a receiver that answers 410, and ends what waits for it', async () => {
  willing.answers.set('/gone', 410)
  const to = await workspaceCalling(`${willing.url}/gone`)
  const gone = await deliver(to, FINDING)
  start()
  await until('it has ended', async () => (await stateOf(gone)) === 'failed')
  const [receiver] = (await createDirectory(redis).alerts(to.workspaceId))?.receivers ?? []
  expect(receiver?.disabled?.reason).toContain('410')
  const later = await deliver(to, OTHER)
  await until('the later one has ended', async () => (await stateOf(later)) === 'failed')
  expect(idsAt(willing)).not.toContain(later.id)
  const results = (await lastAttempts(redis, to.workspaceId, 10)).map(({ result }) => result)
  expect(results).toEqual(['refused', 'gone'])
})

it('sends to others in time while receivers are slow, answer garbage, redirect to themselves or close connections', async () => {
  const answers = [
    // Never answers.
    () => {},
    (socket: { end(text: string): void }) => socket.end('\u0000 garbage\r\n\r\n'),
    (socket: { end(text: string): void }) =>
      socket.end('HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n'),
    (socket: { destroy(): void }) => socket.destroy(),
  ]
  for (const answer of answers) {
    const receiver = await startHostileReceiver(answer)
    hostile.push(receiver)
    const to = await workspaceCalling(`http://127.0.0.1:${receiver.port}/`)
    for (let i = 0; i < 20; i++) await deliver(to, `fnd_${'abcdefghijklmnopqrst'[i]}${'a'.repeat(25)}`)
  }
  start()
  await until('all of them are called', () => hostile.every(({ requests }) => requests.length > 0))
  const to = await workspaceCalling(`${willing.url}/others`)
  const delaysMs: number[] = []
  for (let i = 0; i < 100; i++) {
    const queuedMs = Date.now()
    const { id } = await deliver(to, FINDING)
    await until('it has arrived', () => idsAt(willing).includes(id))
    delaysMs.push(Date.now() - queuedMs)
  }
  const p99 = delaysMs.sort((a, b) => a - b)[98] ?? 0
  expect(p99).toBeLessThan(5_000)
  // A redirect is not followed: each request is an attempt.
  const redirected = hostile[2]?.requests.map(request => /webhook-id: (\S+)/.exec(request)?.[1]) ?? []
  const counts = [...Map.groupBy(redirected, id => id).values()].map(own => own.length)
  expect(Math.max(...counts)).toBeLessThanOrEqual(ATTEMPTS)
})
