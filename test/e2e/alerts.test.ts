import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AlertEvent, alertEventSchema, type FindingEvent } from '../../schemas/http/alerts/events.ts'
import type { AlertsAnswer, DeliveriesAnswer } from '../../schemas/http/alerts/operations.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/receivers/webhook-receiver.ts'
import { call } from '../support/services/api.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const PUBLIC_URL = 'https://penstock.example'
const STACK =
  'Error: the cart is empty\n    at Cart.total (/srv/shop/cart.js:12:7)\n    at main (/srv/shop/main.js:3:1)'

describe('alerts', () => {
  let stack: Stack
  let receiver: WebhookReceiver
  let secret: string

  beforeAll(async () => {
    receiver = await startWebhookReceiver()
    stack = await startStack({
      PUBLIC_URL,
      DELIVERY_KEY: randomBytes(32).toString('base64'),
      DELIVERY_ALLOWED_RECEIVERS: '127.0.0.0/8',
    })
  })
  afterAll(async () => {
    await stack?.stop()
    await receiver?.stop()
  })

  const ask = (operation: string, body?: unknown) =>
    call(stack.apiUrl, operation, { bearer: stack.secrets.sessionToken, body })

  async function replace(change: (alerts: AlertsAnswer) => object): Promise<AlertsAnswer> {
    const before = (await ask('GET /v3/alerts')).body as AlertsAnswer
    const receivers = before.receivers.map(({ name, channel }) => ({ name, channel }))
    const { revision, rules } = before
    const { status, body } = await ask('PUT /v3/alerts', { revision, receivers, rules, ...change(before) })
    expect({ status, body }).toMatchObject({ status: 200 })
    return body as AlertsAnswer
  }

  async function throwError(type: string, { version = '1.0', message = 'the cart is empty' } = {}): Promise<void> {
    const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } })
    const nano = `${Date.now()}000000`
    const span = {
      ...{ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex'), name: 'GET /cart' },
      ...{ startTimeUnixNano: nano, endTimeUnixNano: nano, status: { code: 2 } },
      events: [
        {
          ...{ name: 'exception', timeUnixNano: nano },
          attributes: [
            attribute('exception.type', type),
            attribute('exception.message', message),
            attribute('exception.stacktrace', STACK),
          ],
        },
      ],
    }
    const resource = { attributes: [attribute('service.name', 'shop'), attribute('service.version', version)] }
    const answer = await fetch(`${stack.ingestUrl}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': stack.secrets.publicKey },
      body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }] }),
    })
    expect(answer.status).toBe(200)
  }

  /** Waits for an event about exceptions of a type, whose signature is verified as its receiver would. */
  function untilCalled(kind: AlertEvent['type'], type: string): Promise<FindingEvent> {
    return until(
      `${kind} of ${type}`,
      () => {
        const events = receiver.received.map(({ headers, body }) =>
          alertEventSchema.parse(new Webhook(secret).verify(body, headers)),
        )
        const isWanted = (event: AlertEvent): event is FindingEvent =>
          event.type === kind && 'finding' in event.data && event.data.finding.type === type
        return events.find(isWanted)
      },
      { deadlineMs: 30_000 },
    )
  }

  it('has a rule before anything is set up, and shows the secret of a new webhook once', async () => {
    const { body } = await ask('GET /v3/alerts')
    expect(body).toMatchObject({
      revision: 0,
      receivers: [],
      rules: [{ kinds: expect.arrayContaining(['finding.created']) }],
    })
    const url = `${receiver.url}/hook?token=hidden`
    const kinds = ['finding.created', 'finding.regressed', 'finding.unignored', 'finding.changed', 'finding.commented']
    const made = await replace(() => ({
      receivers: [{ name: 'on-call', channel: 'webhook', url }],
      rules: [{ name: 'all', kinds }],
    }))
    secret = made.receivers[0]?.secret ?? ''
    expect(secret).toMatch(/^whsec_/)
    const again = (await ask('GET /v3/alerts')).body as AlertsAnswer
    expect(again.receivers[0]).not.toHaveProperty('secret')
    expect(again.receivers[0]?.address).toBe(`${receiver.url}/hook`)
  })

  it('sends a test and states how it ended', async () => {
    expect(await ask('POST /v3/alerts/test', { receiver: 'on-call' })).toMatchObject({
      status: 200,
      body: { result: 'delivered', status: 204 },
    })
    const [{ body, headers }] = receiver.received as [WebhookReceiver['received'][number]]
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'test' })
    expect(await ask('POST /v3/alerts/test', { receiver: 'nobody' })).toMatchObject({ status: 400 })
  })

  it('calls for a new finding, with what a person needs to begin', async () => {
    await throwError('EmptyCart')
    const { data } = await untilCalled('finding.created', 'EmptyCart')
    expect(data).toMatchObject({
      finding: { type: 'EmptyCart', message: 'the cart is empty', service: 'shop', release: '1.0', occurrences: 1 },
      frame: { function: 'Cart.total', file: '/srv/shop/cart.js', line: 12 },
    })
    expect(data.links.finding).toBe(`${PUBLIC_URL}/console/findings/${data.finding.id}`)
    expect(data.links.trace).toBe(`${PUBLIC_URL}/console/traces/${data.trace}`)
    await throwError('EmptyCart')
    await throwError('OutOfStock')
    await untilCalled('finding.created', 'OutOfStock')
    const created = receiver.received.filter(
      ({ body }) => body.includes('finding.created') && body.includes('EmptyCart'),
    )
    expect(created).toHaveLength(1)
  })

  it('calls for what members do, and once for a resolved finding that comes back', async () => {
    const { id } = (await untilCalled('finding.created', 'EmptyCart')).data.finding
    expect(await ask(`POST /v3/findings/${id}/comments`, { text: 'looking at it' })).toMatchObject({ status: 201 })
    expect((await untilCalled('finding.commented', 'EmptyCart')).data.changed).toMatchObject({ text: 'looking at it' })
    expect(await ask(`PATCH /v3/findings/${id}`, { status: 'resolved' })).toMatchObject({ status: 200 })
    expect((await untilCalled('finding.changed', 'EmptyCart')).data.changed).toMatchObject({ action: 'resolved' })
    await throwError('EmptyCart', { version: '2.0' })
    expect((await untilCalled('finding.regressed', 'EmptyCart')).data.finding.release).toBe('2.0')
    await throwError('EmptyCart', { version: '2.0' })
    await throwError('Later')
    await untilCalled('finding.created', 'Later')
    expect(receiver.received.filter(({ body }) => body.includes('finding.regressed'))).toHaveLength(1)
  })

  it('repeats what is not accepted with the same id, shows each attempt, and disables a receiver that is gone', async () => {
    receiver.answers.set('/hook?token=hidden', 503)
    await throwError('Repeated')
    await untilCalled('finding.created', 'Repeated')
    receiver.answers.clear()
    const ids = await until('it is repeated', () => {
      const own = receiver.received.filter(({ body }) => body.includes('Repeated'))
      return own.length > 1 ? own.map(({ headers }) => headers['webhook-id']) : undefined
    })
    expect(new Set(ids).size).toBe(1)
    const attempts = await until('both attempts are shown', async () => {
      const { body } = await ask('GET /v3/alerts/deliveries')
      const own = (body as DeliveriesAnswer).attempts.filter(({ deliveryId }) => deliveryId === ids[0])
      return own.length > 1 ? own : undefined
    })
    expect(attempts).toMatchObject([
      { attempt: 2, result: 'delivered', status: 204, receiverName: 'on-call', ruleName: 'all' },
      { attempt: 1, result: 'failed', status: 503, nextAttemptAt: expect.any(String) },
    ])

    receiver.answers.set('/hook?token=hidden', 410)
    await throwError('Gone')
    const disabled = await until('the receiver is disabled', async () => {
      const [shown] = ((await ask('GET /v3/alerts')).body as AlertsAnswer).receivers
      return shown?.disabled
    })
    expect(disabled.reason).not.toBe('')
  })
})
