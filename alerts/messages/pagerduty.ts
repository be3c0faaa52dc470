import { cut } from './clean-text.ts'
import type { Message, MessageItem, Severity } from './message.ts'

/** Limit of `payload.summary` in characters (developer.pagerduty.com/docs/events-api-v2/trigger-events). */
const SUMMARY_MAX_CHARACTERS = 1_024

/** Body of POST https://events.pagerduty.com/v2/enqueue. */
interface PagerDutyEvent {
  readonly routing_key: string
  readonly event_action: 'trigger' | 'resolve'
  /** At most 255 characters. */
  readonly dedup_key: string
  readonly payload: {
    readonly summary: string
    readonly severity: Severity
    readonly source: string
    readonly timestamp: string
    readonly custom_details: Readonly<Record<string, unknown>>
  }
  readonly links: readonly { readonly href: string; readonly text: string }[]
  readonly client: 'Penstock'
}

/**
 * Renders a message as an event of the PagerDuty Events API v2 (developer.pagerduty.com/docs/events-api-v2/trigger-events). It
 * resolves the incident of its key if all its events have ended, else it triggers one. `routingKey` is the integration key.
 */
export function pagerDutyEvent(message: Message, routingKey: string): PagerDutyEvent {
  const [first] = message.items
  const isDigest = message.items.length > 1
  const { more, ruleName } = message
  return {
    routing_key: routingKey,
    event_action: message.resolved ? 'resolve' : 'trigger',
    dedup_key: message.key,
    payload: {
      summary: cut(message.title, SUMMARY_MAX_CHARACTERS),
      severity: message.severity,
      source: message.source,
      timestamp: message.at,
      custom_details: {
        Rule: ruleName,
        ...(first && !isDigest ? detailsOf(first) : { Events: message.items.map(withTitle) }),
        ...(more > 0 && { More: more }),
      },
    },
    links: message.items.flatMap(({ links }) => links.map(({ text, url }) => ({ href: url, text }))),
    client: 'Penstock',
  }
}

function withTitle(item: MessageItem): Record<string, unknown> {
  return { Title: item.title, ...detailsOf(item) }
}

function detailsOf({ changed, facts, frame, chain, comment }: MessageItem): Record<string, unknown> {
  return {
    Changed: changed,
    ...Object.fromEntries(facts.map(({ name, value }) => [name, value])),
    ...(frame && { Frame: frame.place }),
    ...(frame?.sourceLine !== undefined && { Source: frame.sourceLine }),
    ...(chain.length > 0 && { 'Caused by': chain }),
    ...(comment !== undefined && { Comment: comment }),
  }
}
