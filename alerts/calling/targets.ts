import { z } from 'zod'
import type { AlertEvent, FindingEvent } from '../../schemas/http/alerts/events.ts'
import type { Channel, Receiver } from '../../schemas/records/alerts.ts'
import type { Sealing } from '../delivery/sealing.ts'
import type { Delivery } from '../delivery/send.ts'
import { messageOf } from '../messages/message.ts'
import { renderers } from '../messages/render.ts'

const texts = z.array(z.string()).min(1)

/** Where a receiver is reached, and its secrets: what is sealed of it. */
const targetSchema = z.discriminatedUnion('channel', [
  /** The current secret, and the one before it while that is replaced. */
  z.object({ channel: z.literal('webhook'), url: z.string(), secrets: texts.max(2) }),
  z.object({ channel: z.literal('slack'), url: z.string() }),
  z.object({ channel: z.literal('teams'), url: z.string() }),
  z.object({ channel: z.literal('pagerduty'), routingKey: z.string() }),
  z.object({ channel: z.literal('email'), to: texts }),
])
/** Where a receiver is reached, and its secrets. */
export type Target = z.infer<typeof targetSchema>

/** Where PagerDuty takes events. Source: PagerDuty, "Events API v2 overview". */
const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue'

/** Returns the sealed target of a receiver. */
export function sealTarget(sealing: Sealing, workspaceId: string, receiverId: string, target: Target): string {
  return sealing.seal({ workspaceId, receiverId }, JSON.stringify(target))
}

/** Returns the target of a receiver. Throws a PermanentError if it was sealed with another key, or for another receiver. */
export function openTarget(sealing: Sealing, workspaceId: string, { id, sealed }: Receiver): Target {
  return targetSchema.parse(JSON.parse(sealing.open({ workspaceId, receiverId: id }, sealed)))
}

/** Most events of one message. */
export const EVENTS_MAX = 50

/** Returns whether each event is a delivery of its own for this channel. The others show many in one message. */
export function isOneByOne(channel: Channel): boolean {
  return channel === 'webhook' || channel === 'pagerduty'
}

/** Something to send. */
interface Letter {
  /** The same for each attempt. */
  readonly id: string
  readonly events: readonly [AlertEvent, ...AlertEvent[]]
  readonly rule: { readonly id: string; readonly name: string }
  /** Returns the link by which its reader acts on a finding. Absent if the receiver wants none. */
  readonly actLink?: ((findingId: string) => string | undefined) | undefined
}

/** Writes the events of a rule as the channel of a target wants them. */
export function deliveryTo(target: Target, { id, events: stored, rule, actLink }: Letter): Delivery {
  const [first, ...others] = stored
  const events = [withActLink(first, actLink), ...others.map(event => withActLink(event, actLink))] as const
  if (target.channel === 'webhook') {
    const { url, secrets } = target
    return { channel: 'webhook', id, url, body: JSON.stringify(events[0]), secrets }
  }
  const message = messageOf(events, rule)
  if (target.channel === 'email') return { channel: 'email', id, to: target.to, ...renderers.email(message) }
  const service = (url: string, body: object, secrets: readonly string[]) =>
    ({ channel: 'service', url, headers: {}, body: JSON.stringify(body), secrets }) as const
  switch (target.channel) {
    case 'slack':
      return service(target.url, renderers.slack(message), [target.url])
    case 'teams':
      return service(target.url, renderers.teams(message), [target.url])
    case 'pagerduty':
      return service(PAGERDUTY_URL, renderers.pagerduty(message, target.routingKey), [target.routingKey])
  }
}

/** Links are made when a delivery is sent, so that no store has one and each attempt has the whole time of a link. */
function withActLink(event: AlertEvent, actLink: Letter['actLink']): AlertEvent {
  if (!('finding' in event.data)) return event
  const act = actLink?.(event.data.finding.id)
  if (act === undefined) return event
  return { ...event, data: { ...event.data, links: { ...event.data.links, act } } } as FindingEvent
}
