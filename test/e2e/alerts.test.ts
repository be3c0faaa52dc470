import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DeliveriesAnswer } from '../../schemas/http/alerts/deliveries.ts'
import type { AlertsAnswer } from '../../schemas/http/alerts/operations.ts'
import { type AlertsStage, failedSpan, PUBLIC_URL, startAlertsStage } from '../support/alerts/alerts-stage.ts'
import { until } from '../support/until.ts'

const HOOK = '/hook?token=hidden'
/** Kinds that measure nothing. */
const KINDS = [
  'finding.created',
  'finding.regressed',
  'finding.unignored',
  'finding.changed',
  'finding.commented',
] as const

describe('alerts', () => {
  let stage: AlertsStage

  beforeAll(async () => {
    stage = await startAlertsStage(KINDS)
  })
  afterAll(() => stage?.stop())

  const readReceiver = async () => ((await stage.ask('GET /v3/alerts')).body as AlertsAnswer).receivers[0]
  const bodiesWith = (...words: string[]) =>
    stage.receiver.received.filter(({ body }) => words.every(word => body.includes(word)))

  it('shows the secret of a webhook once, and never its whole URL', async () => {
    const receiver = await readReceiver()
    expect(receiver).not.toHaveProperty('secret')
    expect(receiver?.address).toBe(`${stage.receiver.url}/hook`)
  })

  it('sends a test and states how it ended', async () => {
    expect(await stage.ask('POST /v3/alerts/test', { receiver: 'on-call' })).toMatchObject({
      status: 200,
      body: { result: 'delivered', status: 204 },
    })
    expect(stage.events()).toMatchObject([{ type: 'test' }])
    expect(await stage.ask('POST /v3/alerts/test', { receiver: 'nobody' })).toMatchObject({ status: 400 })
  })

  it('calls once for a new finding, with what a person needs to begin', async () => {
    await stage.throwErrors(['EmptyCart'])
    const { data } = await stage.untilCalled('finding.created', 'EmptyCart')
    expect(data).toMatchObject({
      finding: { type: 'EmptyCart', message: 'the cart is empty', service: 'shop', release: '1.0', occurrences: 1 },
      frame: { function: 'Cart.total', file: '/srv/shop/cart.js', line: 12 },
    })
    expect(data.links.finding).toBe(`${PUBLIC_URL}/console/findings/${data.finding.id}`)
    expect(data.links.trace).toBe(`${PUBLIC_URL}/console/traces/${data.trace}`)
    await stage.throwErrors(['EmptyCart'])
    await stage.throwErrors(['OutOfStock'])
    await stage.untilCalled('finding.created', 'OutOfStock')
    expect(bodiesWith('finding.created', 'EmptyCart')).toHaveLength(1)
  })

  it('calls for what members do, and once for a resolved finding that comes back', async () => {
    const { id } = (await stage.untilCalled('finding.created', 'EmptyCart')).data.finding
    expect(await stage.ask(`POST /v3/findings/${id}/comments`, { text: 'on it' })).toMatchObject({ status: 201 })
    expect((await stage.untilCalled('finding.commented', 'EmptyCart')).data.changed).toMatchObject({ text: 'on it' })
    expect(await stage.ask(`PATCH /v3/findings/${id}`, { status: 'resolved' })).toMatchObject({ status: 200 })
    expect((await stage.untilCalled('finding.changed', 'EmptyCart')).data.changed).toMatchObject({ action: 'resolved' })
    await stage.throwErrors(['EmptyCart'], { version: '2.0' })
    expect((await stage.untilCalled('finding.regressed', 'EmptyCart')).data.finding.release).toBe('2.0')
    await stage.throwErrors(['EmptyCart'], { version: '2.0' })
    await stage.throwErrors(['Later'])
    await stage.untilCalled('finding.created', 'Later')
    expect(bodiesWith('finding.regressed')).toHaveLength(1)
  })

  it('has a link by which its reader resolves the finding, unless its receiver wants none', async () => {
    await stage.throwErrors(['Linked'])
    const { data } = await stage.untilCalled('finding.created', 'Linked')
    expect(data.links.act).toMatch(/^https:\/\/penstock\.example\/console\/act\?token=/)
    const { pathname, search, searchParams } = new URL(data.links.act ?? '')
    const page = stage.stack.apiUrl + pathname
    const shown = await fetch(page + search)
    expect([shown.status, await shown.text()]).toEqual([200, expect.stringContaining('Linked: the cart is empty')])
    const form = new URLSearchParams({ token: searchParams.get('token') ?? '', act: 'resolve' })
    const pressed = await fetch(page, { method: 'POST', body: form })
    expect([pressed.status, await pressed.text()]).toEqual([200, expect.stringContaining('The finding is resolved.')])
    const { body } = await stage.ask(`GET /v3/findings/${data.finding.id}`)
    expect(body).toMatchObject({ finding: { status: 'resolved' } })
    const changed = await stage.untilCalled('finding.changed', 'Linked')
    expect(changed.data.changed).toEqual({ by: null, via: { receiver: 'on-call' }, action: 'resolved' })

    const { revision, rules } = (await stage.ask('GET /v3/alerts')).body as AlertsAnswer
    const change = (actions: boolean, at: number) =>
      stage.ask('PUT /v3/alerts', {
        ...{ revision: at, rules },
        receivers: [{ name: 'on-call', channel: 'webhook', actions }],
      })
    const without = (await change(false, revision)).body as AlertsAnswer
    expect(without.receivers).toMatchObject([{ name: 'on-call', actions: false }])
    expect((await fetch(page + search)).status).toBe(404)
    await stage.throwErrors(['Unlinked'])
    expect((await stage.untilCalled('finding.created', 'Unlinked')).data.links).not.toHaveProperty('act')
    expect((await change(true, without.revision)).body).toMatchObject({
      receivers: [expect.not.objectContaining({ actions: false })],
    })
  })

  it('calls for an ignored finding once it has occurred as often as it was ignored for', async () => {
    const { id } = (await stage.untilCalled('finding.created', 'OutOfStock')).data.finding
    const ignored = { status: 'ignored', ignoreOccurrences: 2 }
    expect(await stage.ask(`PATCH /v3/findings/${id}`, ignored)).toMatchObject({ status: 200 })
    await stage.throwErrors(['OutOfStock'])
    await stage.throwErrors(['AfterIgnored'])
    await stage.untilCalled('finding.created', 'AfterIgnored')
    expect(bodiesWith('finding.unignored')).toHaveLength(0)
    await stage.throwErrors(['OutOfStock'])
    await stage.untilCalled('finding.unignored', 'OutOfStock')
  })

  it('calls for a failed span without an exception once it counts', async () => {
    const attributes = [
      { key: 'http.request.method', value: { stringValue: 'GET' } },
      { key: 'http.route', value: { stringValue: '/cart/{id}' } },
      { key: 'http.response.status_code', value: { intValue: '500' } },
    ]
    await stage.sendSpans([failedSpan([], attributes)])
    await stage.untilCalled('finding.created', 'GET /cart/{id} → 500')
  })

  it('repeats what is not accepted with the same id, shows each attempt, and disables a receiver that is gone', async () => {
    const { answers } = stage.receiver
    answers.set(HOOK, 503)
    await stage.throwErrors(['Repeated'])
    const { id } = (await stage.untilCalled('finding.created', 'Repeated')).data.finding
    // Later events of the finding wait for it.
    expect(await stage.ask(`POST /v3/findings/${id}/comments`, { text: 'waits' })).toMatchObject({ status: 201 })
    answers.clear()
    await stage.untilCalled('finding.commented', 'Repeated')
    const own = bodiesWith('Repeated')
    expect(own.map(({ body }) => JSON.parse(body).type)).toEqual([
      ...['finding.created', 'finding.created', 'finding.commented'],
    ])
    const ids = own.slice(0, 2).map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(1)
    const attempts = await until('both attempts are shown', async () => {
      const { body } = await stage.ask('GET /v3/alerts/deliveries')
      const own = (body as DeliveriesAnswer).attempts.filter(({ deliveryId }) => deliveryId === ids[0])
      return own.length > 1 ? own : undefined
    })
    expect(attempts).toMatchObject([
      { attempt: 2, result: 'delivered', status: 204, receiverName: 'on-call', ruleName: 'all' },
      { attempt: 1, result: 'failed', status: 503, nextAttemptAt: expect.any(String) },
    ])

    answers.set(HOOK, 410)
    await stage.throwErrors(['Gone'])
    const disabled = await until('the receiver is disabled', async () => (await readReceiver())?.disabled, {
      deadlineMs: 60_000,
    })
    expect(disabled.reason).not.toBe('')
  })

  it('signs with both secrets after one was rotated', async () => {
    const { revision, rules } = (await stage.ask('GET /v3/alerts')).body as AlertsAnswer
    const receivers = [{ name: 'on-call', channel: 'webhook', rotateSecret: true, disabled: false }]
    const changed = await stage.ask('PUT /v3/alerts', { revision, receivers, rules })
    const secret = (changed.body as AlertsAnswer).receivers[0]?.secret ?? ''
    stage.receiver.answers.clear()
    expect(await stage.ask('POST /v3/alerts/test', { receiver: 'on-call' })).toMatchObject({
      body: { result: 'delivered' },
    })
    const last = stage.receiver.received.at(-1)
    expect(new Webhook(secret).verify(last?.body ?? '', last?.headers ?? {})).toMatchObject({ type: 'test' })
    // Verified by the secret before it.
    expect(stage.events().at(-1)).toMatchObject({ type: 'test' })
  })
})
