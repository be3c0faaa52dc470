import type { CalledEvent } from '../../schemas/http/alerts/events.ts'
import type { AlertRule, Alerts, Receiver } from '../../schemas/records/alerts.ts'

/** A receiver, and the first rule by which it is called. */
export interface Called {
  readonly receiver: Receiver
  readonly rule: AlertRule
}

/** Kinds of events that open a matter, which the resolution of the finding closes. */
const OPENING = ['finding.created', 'finding.regressed', 'finding.unignored']

/**
 * Returns the receivers that are called for an event, each once, by the first rule that matches. What a rule has measured is of
 * that rule alone. The resolution of a finding is of rules for new and returning findings first: what they have opened is closed.
 */
export function calledFor(
  event: CalledEvent,
  { receivers, rules }: Pick<Alerts, 'receivers' | 'rules'>,
  measuredBy?: string,
): Called[] {
  const matching =
    measuredBy === undefined
      ? rulesFor(event, rules)
      : rules.filter(rule => rule.name === measuredBy && callsForMeasured(rule, event))
  return receivers.flatMap(receiver => {
    const rule = matching.find(({ receivers: named }) => named === undefined || named.includes(receiver.name))
    return rule === undefined || receiver.disabled ? [] : [{ receiver, rule }]
  })
}

function rulesFor({ type, data }: CalledEvent, rules: readonly AlertRule[]): AlertRule[] {
  const meeting = rules.filter(rule => meetsConditions(rule, data))
  const named = meeting.filter(({ kinds }) => kinds.includes(type))
  if (type !== 'finding.changed' || !data.resolved) return named
  const opening = meeting.filter(
    ({ kinds, resolved }) => resolved !== false && kinds.some(kind => OPENING.includes(kind)),
  )
  return [...opening, ...named]
}

function meetsConditions(rule: AlertRule, data: CalledEvent['data']): boolean {
  if (!('finding' in data)) return true
  const { service, environment = '', release = '', type } = data.finding
  const meets = (values: readonly string[] | undefined, value: string) => values === undefined || values.includes(value)
  return (
    meets(rule.surfaces, data.surface?.id ?? '') &&
    meets(rule.services, service) &&
    meets(rule.environments, environment) &&
    meets(rule.releases, release) &&
    meets(rule.types, type) &&
    hasPeople(rule, data)
  )
}

/** The other conditions of a rule are met by what it measures. */
function callsForMeasured(rule: AlertRule, { type, data }: CalledEvent): boolean {
  return rule.kinds.includes(type) && !(data.resolved && rule.resolved === false) && hasPeople(rule, data)
}

function hasPeople({ minPeople = 0 }: AlertRule, data: CalledEvent['data']): boolean {
  return !('finding' in data) || data.finding.people >= minPeople
}
