import { createHash } from 'node:crypto'
import type { AlertEvent, AlertEventType } from '../../schemas/http/alerts/events.ts'
import { base32 } from '../../shared/ids/base32.ts'
import { cut } from './clean-text.ts'
import { type Details, detailsOf } from './details.ts'
import { digestTitle, sentencesOf, subjectOf } from './sentences.ts'
import { counted, shortName, shownTime } from './words.ts'

/** Most events that a message shows. It counts the others. */
const SHOWN_MAX = 10
const TITLE_MAX_CHARACTERS = 200

/** How severe a message is, in the words of PagerDuty, the most severe first. */
const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const
/** How severe a message is. */
export type Severity = (typeof SEVERITIES)[number]

/** The part of a message about one event. */
export interface MessageItem extends Details {
  readonly title: string
  /** Sentences that state what changed. */
  readonly changed: string
}

/**
 * A message about events of one rule, before it has the form of a channel. Every text is one line of bounded length without
 * invisible characters, and every URL is http or https and safe inside a link. Nothing is escaped: each form has its own rules.
 */
export interface Message {
  /** The same for all messages about one condition of a rule, so that an incident can be found again. */
  readonly key: string
  readonly title: string
  readonly severity: Severity
  /** Whether all events are conditions that have ended. */
  readonly resolved: boolean
  /** When the last event occurred, as RFC 3339. */
  readonly at: string
  /** The service, the surface or the workspace that the first event concerns. */
  readonly source: string
  readonly ruleName: string
  readonly items: readonly MessageItem[]
  /** How many events are not in `items`. */
  readonly more: number
}

/**
 * Makes a message of the events of a rule. It shows the first ten, and of several events only the details that matter most.
 * PagerDuty needs a message for each event: the key of several events is that of exactly these, so it finds no incident of one.
 */
export function messageOf(
  events: readonly [AlertEvent, ...AlertEvent[]],
  rule: { readonly id: string; readonly name: string },
): Message {
  const resolved = events.every(({ data }) => data.resolved)
  const isDigest = events.length > 1
  const ruleName = shortName(rule.name) || shortName(rule.id)
  const shown = events.slice(0, SHOWN_MAX).map(event => itemOf(event, isDigest))
  const title = isDigest ? digestTitle(events, ruleName) : (shown[0]?.title ?? '')
  return {
    key: keyOf(events, rule.id),
    title: cut(title, TITLE_MAX_CHARACTERS),
    severity: SEVERITIES.find(severity => events.some(event => severityOf(event) === severity)) ?? 'info',
    resolved,
    at: events.map(({ timestamp }) => timestamp).reduce((a, b) => (Date.parse(b) > Date.parse(a) ? b : a)),
    source: subjectOf(events[0]),
    ruleName,
    items: shown,
    more: events.length - shown.length,
  }
}

/** The links of an event among several: to the finding, and to what can be done with it. */
const DIGEST_LINKS = 2
/** The facts of an event among several: its title has its service. */
const DIGEST_FACTS: ReadonlySet<string> = new Set(['Environment', 'Release', 'Occurrences', 'Hit'])

function itemOf(event: AlertEvent, isDigest: boolean): MessageItem {
  const { title, changed } = sentencesOf(event)
  const details = detailsOf(event.data)
  const facts = details.facts.filter(({ name }) => DIGEST_FACTS.has(name))
  const shown = isDigest ? { ...details, facts, chain: [], links: details.links.slice(0, DIGEST_LINKS) } : details
  return { title: cut(title, TITLE_MAX_CHARACTERS), changed, ...shown }
}

const SEVERITY_OF: Readonly<Record<AlertEventType, Severity>> = {
  'finding.created': 'error',
  'finding.regressed': 'error',
  'finding.unignored': 'warning',
  'finding.spiking': 'critical',
  'finding.spreading': 'critical',
  'finding.changed': 'info',
  'finding.commented': 'info',
  'metric.threshold': 'error',
  'service.errors': 'critical',
  'service.latency': 'error',
  'surface.silent': 'critical',
  'pipeline.dead_letters': 'error',
  'pipeline.quota': 'warning',
  'pipeline.late': 'warning',
  test: 'info',
}

function severityOf({ type, data }: AlertEvent): Severity {
  return data.resolved ? 'info' : SEVERITY_OF[type]
}

function keyOf(events: readonly AlertEvent[], ruleId: string): string {
  const conditions = events.map(conditionOf).sort()
  const digest = createHash('sha256')
    .update(JSON.stringify([ruleId, ...conditions]))
    .digest()
  return `alert_${base32(digest, 26)}`
}

/** Returns a text that is the same for an event and the one with which its condition ends, or its finding is resolved. */
export function conditionOf({ type, data }: AlertEvent): string {
  if ('finding' in data) return data.measured ? `${type} ${data.finding.id}` : data.finding.id
  if (!('measured' in data)) return data.id
  const { workspaceId, surface, service, environment, measured } = data
  return JSON.stringify([type, workspaceId, surface?.id, service, environment, measured.what, measured.expression])
}

/** Returns the line below a message: its severity, its rule and its time. */
export function footerOf({ severity, resolved, ruleName, at }: Message): string {
  const state = resolved ? 'Ended' : severity.charAt(0).toUpperCase() + severity.slice(1)
  return `${state} · Rule: ${ruleName} · ${shownTime(at)}`
}

/** Returns the line that counts the events that a message does not show, if there are any. */
export function moreOf({ more }: Message): string | undefined {
  return more > 0 ? `and ${counted(more, 'other event')}` : undefined
}
