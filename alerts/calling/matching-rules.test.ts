import { expect, it } from 'vitest'
import type { CalledEvent } from '../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../schemas/http/alerts/example-events.ts'
import type { AlertRule, Receiver } from '../../schemas/records/alerts.ts'
import { calledFor } from './matching-rules.ts'

const receiver = (name: string): Receiver => ({
  ...{ id: `rcv_${'0'.repeat(20)}`, name, channel: 'webhook', address: '', sealed: '' },
  createdAt: '2026-11-21T10:15:30.000Z',
})
const created = EXAMPLE_EVENTS['finding.created'] as CalledEvent & { data: { finding: object } }
const errors = EXAMPLE_EVENTS['service.errors'] as CalledEvent
const ended = (event: CalledEvent) => ({ ...event, data: { ...event.data, resolved: true } }) as CalledEvent
const resolution = {
  ...created,
  type: 'finding.changed',
  data: { ...created.data, resolved: true, changed: { by: null, action: 'resolved' } },
} as CalledEvent
const found = (fields: object) =>
  ({ ...created, data: { ...created.data, finding: { ...created.data.finding, ...fields } } }) as CalledEvent

const calls = (event: CalledEvent, rules: AlertRule[], measuredBy?: string) =>
  calledFor(event, { receivers: [receiver('on-call'), receiver('tracker')], rules }, measuredBy).map(
    ({ receiver: { name }, rule }) => `${name} by ${rule.name}`,
  )
const rule = (name: string, kind: AlertRule['kinds'][number], more: Partial<AlertRule> = {}): AlertRule => ({
  ...{ name, kinds: [kind] },
  ...more,
})

it('calls each receiver once, by the first rule that matches and names it', () => {
  const rules = [
    rule('other', 'finding.regressed'),
    rule('first', 'finding.created', { receivers: ['on-call'] }),
    rule('second', 'finding.created'),
  ]
  expect(calls(created, rules)).toEqual(['on-call by first', 'tracker by second'])
})

it.each([
  ['releases', ['1.4.0'], { release: '1.4.0' }, { release: '1.5.0' }],
  ['releases', ['1.4.0'], { release: '1.4.0' }, { release: undefined }],
  ['environments', ['production'], { environment: 'production' }, { environment: 'staging' }],
  ['services', ['shop'], { service: 'shop' }, { service: '' }],
  ['types', ['EmptyCart'], { type: 'EmptyCart' }, { type: 'EmptyCarts' }],
  ['minPeople', 3, { people: 3 }, { people: 2 }],
])('meets %s %s', (field, value, met, missed) => {
  const rules = [rule('r', 'finding.created', { [field]: value, receivers: ['on-call'] })]
  expect([calls(found(met), rules), calls(found(missed), rules)]).toEqual([['on-call by r'], []])
})

it('calls for what a rule has measured by that rule alone, whose other conditions are met already', () => {
  const rules = [
    rule('first', 'service.errors', { receivers: ['on-call'] }),
    rule('second', 'service.errors', { receivers: ['on-call'], services: ['elsewhere'] }),
  ]
  expect(calls(errors, rules, 'second')).toEqual(['on-call by second'])
  expect(calls(errors, rules, 'removed')).toEqual([])
  expect(calls(errors, [rule('second', 'service.latency')], 'second')).toEqual([])
})

it('calls for the end of a condition unless the rule leaves it out', () => {
  const of = (resolved?: boolean) => [
    rule('r', 'service.errors', { receivers: ['tracker'], ...(resolved !== undefined && { resolved }) }),
  ]
  expect(calls(ended(errors), of(), 'r')).toEqual(['tracker by r'])
  expect(calls(ended(errors), of(true), 'r')).toEqual(['tracker by r'])
  expect(calls(ended(errors), of(false), 'r')).toEqual([])
})

it('calls for a resolution by the rule that calls for new findings, else by one for changes', () => {
  const changes = rule('changes', 'finding.changed')
  const news = (resolved?: boolean) =>
    rule('news', 'finding.created', { receivers: ['on-call'], ...(resolved !== undefined && { resolved }) })
  expect(calls(resolution, [changes, news()])).toEqual(['on-call by news', 'tracker by changes'])
  expect(calls(resolution, [changes, news(false)])).toEqual(['on-call by changes', 'tracker by changes'])
  expect(calls(resolution, [news()])).toEqual(['on-call by news'])
  expect(calls(resolution, [rule('spikes', 'finding.spiking')])).toEqual([])
  const other = { ...resolution, data: { ...resolution.data, resolved: false } } as CalledEvent
  expect(calls(other, [news()])).toEqual([])
})
