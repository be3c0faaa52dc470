import type { FindingEvent } from '../../schemas/http/alerts/events.ts'
import type { AlertRule, Alerts, Receiver } from '../../schemas/records/alerts.ts'

/** A receiver, and the first rule by which it is called. */
export interface Called {
  readonly receiver: Receiver
  readonly rule: AlertRule
}

/** Returns the receivers that are called for an event, each once, by the first rule that matches. */
export function calledFor(
  { type, data }: FindingEvent,
  { receivers, rules }: Pick<Alerts, 'receivers' | 'rules'>,
): Called[] {
  const { service, environment = '', type: exception } = data.finding
  const matching = rules.filter(rule => {
    const meets = (values: readonly string[] | undefined, value: string) =>
      values === undefined || values.includes(value)
    return (
      (rule.kinds as readonly string[]).includes(type) &&
      meets(rule.surfaces, data.surface?.id ?? '') &&
      meets(rule.services, service) &&
      meets(rule.environments, environment) &&
      meets(rule.types, exception)
    )
  })
  return receivers.flatMap(receiver => {
    const rule = matching.find(({ receivers: named }) => named === undefined || named.includes(receiver.name))
    return rule === undefined || receiver.disabled ? [] : [{ receiver, rule }]
  })
}
