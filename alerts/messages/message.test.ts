import { expect, it } from 'vitest'
import type { AlertEvent, FindingEvent, MeasuredEvent } from '../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../schemas/http/alerts/example-events.ts'
import { messageOf } from './message.ts'

const RULE = { id: 'rul_1', name: 'Checkout' }
const created = EXAMPLE_EVENTS['finding.created'] as FindingEvent
const errors = EXAMPLE_EVENTS['service.errors'] as MeasuredEvent
const silent = EXAMPLE_EVENTS['surface.silent'] as MeasuredEvent

function ended<E extends AlertEvent>(event: E): E {
  return { ...event, data: { ...event.data, resolved: true } }
}

it('states what is new, where, and whom it hits', () => {
  expect(messageOf([created], RULE)).toMatchObject({
    title: 'New finding in shop: EmptyCartError: the cart is empty',
    severity: 'error',
    resolved: false,
    at: created.timestamp,
    source: 'shop',
    ruleName: 'Checkout',
    more: 0,
    items: [
      {
        changed: 'It occurred for the first time, in release 1.4.0.',
        facts: [
          { name: 'Service', value: 'shop' },
          { name: 'Surface', value: 'web shop' },
          { name: 'Environment', value: 'production' },
          { name: 'Release', value: '1.4.0' },
          { name: 'Occurrences', value: '3' },
          { name: 'Hit', value: '1 person, 2 sessions' },
          { name: 'First seen', value: '2026-09-21 14:13 UTC' },
          { name: 'Last seen', value: '2026-09-21 14:13 UTC' },
        ],
        frame: { place: 'checkout in cart.ts:1', sourceLine: 'throw new EmptyCartError(cart)' },
        chain: ['TypeError: items is undefined'],
      },
    ],
  })
})

it('states a value with its threshold, and that it is back within it', () => {
  const [begun, over] = [messageOf([errors], RULE), messageOf([ended(errors)], RULE)]
  expect(begun.title).toBe('Many errors in shop: 12.5 %')
  expect(begun.items[0]?.changed).toBe('Share of failed calls: 12.5 % within 5 minutes. The threshold is 5 %.')
  expect(over.title).toBe('Errors in shop are back to normal')
  // The event has the last value that met the condition.
  expect(over.items[0]?.changed).toBe('The last value beyond the threshold of 5 % was 12.5 %.')
  expect(over).toMatchObject({ resolved: true, severity: 'info' })
})

it('states the end of each condition without a value that is over', () => {
  const titles = Object.values(EXAMPLE_EVENTS)
    .filter(({ data }) => 'measured' in data && data.measured)
    .map(event => messageOf([ended(event)], RULE).title)
  expect(titles).toEqual([
    'Spike is over in shop: EmptyCartError: the cart is empty',
    'Finding no longer spreads in shop: EmptyCartError: the cart is empty',
    'p95 of http.server.request.duration in web shop is within its threshold again',
    'Errors in shop are back to normal',
    'shop is fast again',
    'web shop sends data again',
    'No new dead letters in web shop',
    'web shop is within its quotas again',
    'Data of web shop is on time again',
  ])
})

it('calls a workspace so where there is neither a service nor a surface', () => {
  const { surface: _, ...data } = EXAMPLE_EVENTS['pipeline.quota'].data
  const event = { ...EXAMPLE_EVENTS['pipeline.quota'], data } as AlertEvent
  expect(messageOf([event], RULE)).toMatchObject({
    title: 'The workspace is over a quota: 92',
    source: data.workspaceId,
  })
})

it('counts one person, and no session and no person that there is not', () => {
  const hit = (people: number, sessions: number) => {
    const finding = { ...created.data.finding, people, sessions }
    const [item] = messageOf([{ ...created, data: { ...created.data, finding } }], RULE).items
    return item?.facts.find(({ name }) => name === 'Hit')?.value
  }
  expect([hit(12, 40), hit(1, 1), hit(0, 3), hit(0, 0)]).toEqual([
    '12 people, 40 sessions',
    '1 person, 1 session',
    '3 sessions',
    undefined,
  ])
  const measured = { what: 'people', value: 1, threshold: 1, unit: '', minutes: 5 }
  const spreading = { ...created, type: 'finding.spreading', data: { ...created.data, measured } } as const
  expect(messageOf([spreading], RULE).items[0]?.changed).toBe(
    'It hits many people. It hit 1 person within 5 minutes. The threshold is 1.',
  )
})

it('has the same key for the begin and the end of a condition, and another for other conditions and rules', () => {
  for (const event of [created, errors, silent]) {
    expect(messageOf([ended(event)], RULE).key).toBe(messageOf([event], RULE).key)
  }
  const elsewhere = { ...errors, data: { ...errors.data, service: 'billing' } }
  const keys = [created, errors, silent, elsewhere].map(event => messageOf([event], RULE).key)
  expect(new Set([...keys, messageOf([created], { ...RULE, id: 'rul_2' }).key]).size).toBe(5)
})

it('has the key of a new finding when it is resolved, and another one for its spikes', () => {
  const spiking = EXAMPLE_EVENTS['finding.spiking']
  const changed = { ...EXAMPLE_EVENTS['finding.changed'].data, changed: { by: null, action: 'resolved' } }
  const resolution = { ...created, type: 'finding.changed', data: { ...changed, resolved: true } } as AlertEvent
  const [opened, closed, spike] = [created, resolution, spiking].map(event => messageOf([event], RULE))
  expect(closed).toMatchObject({ key: opened?.key, resolved: true })
  expect(spike?.key).not.toBe(opened?.key)
  expect(messageOf([ended(spiking)], RULE).key).toBe(spike?.key)
})

it('shows ten of many events with less about each, and counts the rest', () => {
  const message = messageOf([created, ...Array.from({ length: 11 }, () => created)], RULE)
  expect(message).toMatchObject({ title: '12 new findings in shop', more: 2 })
  expect(message.items).toHaveLength(10)
  expect(message.items[9]).toMatchObject({
    chain: [],
    links: [{ text: 'Open the finding' }, { text: 'Acknowledge, resolve or ignore' }],
  })
})

it('is as severe as its most severe event, ended only if all events have, and as late as the last', () => {
  const later = { ...silent, timestamp: '2026-09-21T15:00:00.000Z' }
  const mixed = messageOf([created, later, ended(errors)], RULE)
  expect(mixed).toMatchObject({
    title: 'Checkout: 3 alerts',
    severity: 'critical',
    resolved: false,
    at: later.timestamp,
  })
  expect(messageOf([ended(errors), ended(errors)], RULE)).toMatchObject({
    title: 'Checkout: 2 alerts ended in shop',
    resolved: true,
  })
})

it('says who did what with a finding', () => {
  const by = { userId: 'user_7f3a' }
  const merged = { by, action: 'merged', findingId: 'fnd_5tq2cwhl6xbn3r7ymdk4gpazse' } as const
  const changed = (change: NonNullable<FindingEvent['data']['changed']>) =>
    messageOf([{ ...created, type: 'finding.changed', data: { ...created.data, changed: change } }], RULE)
  expect(changed(merged).items[0]?.changed).toBe('user_7f3a merged fnd_5tq2cwhl6xbn3r7ymdk4gpazse into it.')
  expect(changed({ by: null, action: 'resolved' })).toMatchObject({
    title: 'Finding resolved in shop: EmptyCartError: the cart is empty',
    items: [{ changed: 'An operator resolved it.' }],
  })
  const acknowledged = { by: null, via: { receiver: 'on-call' }, action: 'acknowledged' } as const
  expect(changed(acknowledged)).toMatchObject({
    title: 'Finding acknowledged in shop: EmptyCartError: the cart is empty',
    items: [{ changed: 'Somebody acknowledged it through a message to on-call.' }],
  })
})

it('leaves out links that are not http, have a user, or are too long', () => {
  const links = {
    finding: 'javascript:alert(1)',
    trace: 'https://penstock.example@evil.example/',
    recording: `https://penstock.example/${'a'.repeat(1_000)}`,
  }
  expect(messageOf([{ ...created, data: { ...created.data, links } }], RULE).items[0]?.links).toEqual([])
})
