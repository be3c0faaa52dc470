import { Redis } from 'ioredis'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AlertsAnswer } from '../../../schemas/http/alerts/operations.ts'
import { verifiesV1a } from '../../support/receivers/verify-v1a.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../support/receivers/webhook-receiver.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/13`

let api: TestApi
let receiver: WebhookReceiver
let bearer: string

beforeAll(async () => {
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  redis.disconnect()
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  receiver = await startWebhookReceiver()
  api = await startApi({ ...services, redisUrl }, 'default', { DELIVERY_ALLOWED_RECEIVERS: '127.0.0.0/8' })
  bearer = await signToken()
})
afterAll(async () => {
  await api?.stop()
  await receiver?.stop()
})

const ask = (operation: string, body?: object) => call(api.baseUrl, operation, { bearer, body })

async function put(more: object) {
  const { revision } = (await ask('GET /v3/alerts')).body as AlertsAnswer
  const receivers = [{ name: 'hook', channel: 'webhook', ...more }]
  const { status, body } = await ask('PUT /v3/alerts', { revision, receivers, rules: [] })
  expect(status, JSON.stringify(body)).toBe(200)
  return (body as AlertsAnswer).receivers[0]
}

async function received() {
  expect(await ask('POST /v3/alerts/test', { receiver: 'hook' })).toMatchObject({ body: { result: 'delivered' } })
  const { headers = {}, body = '' } = receiver.received.at(-1) ?? {}
  return { headers, body, count: headers['webhook-signature']?.split(' ').length }
}

it('signs by Ed25519 with a key whose public part is always shown, and with both while one replaces the other', async () => {
  const made = await put({ url: receiver.url, signature: 'ed25519' })
  expect(made).not.toHaveProperty('secret')
  const first = made?.publicKey ?? ''
  expect(first).toMatch(/^whpk_[\w+/]{43}=$/)
  const one = await received()
  expect([verifiesV1a(first, one.headers, one.body), one.count]).toEqual([true, 1])

  // A request that does not state it, or states it again, keeps the key.
  expect((await put({}))?.publicKey).toBe(first)
  expect((await put({ signature: 'ed25519', url: receiver.url }))?.publicKey).toBe(first)
  expect(((await ask('GET /v3/alerts')).body as AlertsAnswer).receivers[0]?.publicKey).toBe(first)

  const rotated = await put({ rotateSecret: true })
  const second = rotated?.publicKey ?? ''
  expect(second).not.toBe(first)
  expect(rotated).not.toHaveProperty('secret')
  const two = await received()
  for (const key of [first, second]) expect(verifiesV1a(key, two.headers, two.body)).toBe(true)
  await put({ rotateSecret: true })
  const three = await received()
  expect([verifiesV1a(first, three.headers, three.body), three.count]).toEqual([false, 2])
})

it('signs with the secret and the key beside each other while one kind replaces the other', async () => {
  const { secret = '', publicKey } = (await put({ signature: 'hmac' })) ?? {}
  expect([secret, publicKey]).toEqual([expect.stringMatching(/^whsec_/), undefined])
  const one = await received()
  expect(new Webhook(secret).verify(one.body, one.headers)).toMatchObject({ type: 'test' })
  const key = (await put({ signature: 'ed25519' }))?.publicKey ?? ''
  const two = await received()
  expect(new Webhook(secret).verify(two.body, two.headers)).toMatchObject({ type: 'test' })
  expect([verifiesV1a(key, two.headers, two.body), two.count]).toEqual([true, 2])
})

it('refuses a signature for another channel', async () => {
  const { revision } = (await ask('GET /v3/alerts')).body as AlertsAnswer
  const receivers = [{ name: 'mail', channel: 'email', to: ['a@shop.example'], signature: 'ed25519' }]
  expect(await ask('PUT /v3/alerts', { revision, receivers, rules: [] })).toMatchObject({ status: 400 })
})
