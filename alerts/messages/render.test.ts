import { describe, expect, it } from 'vitest'
import { type AlertEvent, type AlertEventType, alertEventSchema } from '../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../schemas/http/alerts/example-events.ts'
import { messageOf } from './message.ts'
import { renderers } from './render.ts'

const RULE = { id: 'rul_1', name: 'Checkout' }
const CONSOLE = 'https://penstock.example/console'
const error = 'EmptyCartError: the cart is empty'

/** Texts that every form of an event shows. */
const ESSENTIAL: Readonly<Record<AlertEventType, readonly string[]>> = {
  'finding.created': [
    'New finding in shop',
    error,
    'first time, in release 1.4.0',
    'checkout in cart.ts:1',
    'throw new EmptyCartError(cart)',
    '1 person, 2 sessions',
    'TypeError: items',
  ],
  'finding.regressed': ['Finding is back in shop', error, 'It was resolved, and occurs again in release 1.4.0.'],
  'finding.unignored': ['Finding is open again in shop', error, 'It is no longer ignored.'],
  'finding.spiking': ['Finding spikes in shop', error, 'It occurred 120 times within 5 minutes. The threshold is 50.'],
  'finding.spreading': ['Finding spreads in shop', error, 'It hit 25 people within 1 hour. The threshold is 10.'],
  'finding.changed': ['Finding assigned in shop', error, 'Ada assigned it to Grace.'],
  'finding.commented': ['Comment on a finding in shop', error, 'Ada commented on it.', 'The cart is emptied twice.'],
  'metric.threshold': [
    'p95 of http.server.request.duration in web shop: 1.25 s',
    'beyond the threshold of 1 s for 10 minutes.',
    'histogram_quantile(0.95',
  ],
  'service.errors': ['Many errors in shop: 12.5 %', 'within 5 minutes. The threshold is 5 %.'],
  'service.latency': ['shop is slow: 850 ms', 'p95 of the duration: 850 ms', 'The threshold is 500 ms.'],
  'surface.silent': ['web shop is silent', 'It was sent nothing for 30 minutes.'],
  'pipeline.dead_letters': ['Dead letters in web shop: 40', 'Kept as dead letters within 15 minutes: 40 requests.'],
  'pipeline.quota': ['web shop is over a quota: 92', 'Refused within 1 hour: 92 requests.'],
  'pipeline.late': [
    'Data of web shop is late: 340 s',
    'The oldest request that is not stored is 340 s old. The threshold is 300 s.',
  ],
  test: ['Test message', 'Messages to this receiver arrive here.'],
}

/** Returns the texts of a form as a reader sees them, by channel. */
function textsOf(event: AlertEvent): Record<string, string> {
  const message = messageOf([event], RULE)
  const { subject, text, html } = renderers.email(message)
  return {
    text: renderers.text(message),
    markdown: renderers.markdown(message).replaceAll(/\\([!-/:-@[-`{-~])/g, '$1'),
    slack: JSON.stringify(renderers.slack(message)),
    teams: JSON.stringify(renderers.teams(message)),
    pagerduty: JSON.stringify(renderers.pagerduty(message, 'k')),
    mail: `${subject}\n${text}`,
    html,
  }
}

describe.each(Object.values(EXAMPLE_EVENTS))('$type', event => {
  it('is as the schema of webhooks has it', () => {
    expect(alertEventSchema.parse(event)).toEqual(event)
    expect(alertEventSchema.safeParse({ ...event, data: { ...event.data, extra: 1 } }).success).toBe(false)
  })

  it('shows what matters in every form', () => {
    const links = 'links' in event.data ? Object.values(event.data.links) : []
    for (const [channel, shown] of Object.entries(textsOf(event))) {
      for (const text of [...ESSENTIAL[event.type], ...links, 'Checkout']) expect(shown, channel).toContain(text)
    }
  })
})

it('renders a finding as plain text', () => {
  expect(renderers.text(messageOf([EXAMPLE_EVENTS['finding.regressed']], RULE))).toBe(`\
Finding is back in shop: EmptyCartError: the cart is empty

It was resolved, and occurs again in release 1.4.0.
At checkout in cart.ts:1
Source: throw new EmptyCartError(cart)
Caused by TypeError: items is undefined
Service: shop
Surface: web shop
Environment: production
Release: 1.4.0
Occurrences: 3
Hit: 1 person, 2 sessions
First seen: 2026-09-21 14:13 UTC
Last seen: 2026-09-21 14:13 UTC
Open the finding: ${CONSOLE}/findings/fnd_4g6peb7eom2yodowmzpd5xfhbe
Acknowledge, resolve or ignore: ${CONSOLE}/act?token=1.ws_1.fnd_1.rcv_1.tfxq8w.signature
Open the trace: ${CONSOLE}/traces/5b8efff798038103d269b633813fc60c
Watch the recording: ${CONSOLE}/sessions/session-1

Error · Rule: Checkout · 2026-09-21 14:13 UTC`)
})

it('shows every event of several in every form, and counts the rest', () => {
  const [first, ...others] = Object.values(EXAMPLE_EVENTS)
  const message = messageOf([first as AlertEvent, ...others], RULE)
  const forms = [renderers.text, renderers.markdown, renderers.slack, renderers.teams, renderers.email]
  for (const form of forms) {
    const shown = JSON.stringify(form(message)).replaceAll(/\\\\(?=[!-/:-@[-`{-~])/g, '')
    for (const { title } of message.items) expect(shown).toContain(title)
    expect(shown).toContain('and 5 other events')
  }
  expect(renderers.pagerduty(message, 'k').payload.custom_details).toMatchObject({ More: 5 })
})

it('resolves the incident in PagerDuty when the condition has ended', () => {
  const event = EXAMPLE_EVENTS['service.errors'] as AlertEvent
  const over = { ...event, data: { ...event.data, resolved: true } } as AlertEvent
  const [begun, ended] = [event, over].map(each => renderers.pagerduty(messageOf([each], RULE), 'k'))
  expect(begun).toMatchObject({ routing_key: 'k', event_action: 'trigger', payload: { severity: 'critical' } })
  expect(ended).toMatchObject({ event_action: 'resolve', dedup_key: begun?.dedup_key })
})
