import type { AlertRule } from '../../api/generated/client.ts'
import { counted } from '../../state/format.ts'
import type { ListCondition, Measure } from '../kinds.ts'
import type { NamedSurface } from './suggestions.ts'

/** The default of the API. */
export const SPIKING = { times: 5, atLeast: 20 }

/** Returns what a rule with a measure compares, as a sentence. */
export function measureWords(rule: AlertRule, measure: Measure): string | undefined {
  const { spreading, metric, errors, latency, silent } = rule
  const minutes = (of: { readonly minutes: number }) => counted(of.minutes, 'minute')
  switch (measure) {
    case 'spiking': {
      const { times, atLeast } = rule.spiking ?? SPIKING
      return `${times} times as often as the busiest five minutes of that hour, and at least ${atLeast} times`
    }
    case 'spreading':
      return spreading && `${counted(spreading.people, 'person', 'people')} or more in ${minutes(spreading)}`
    case 'metric':
      return (
        metric &&
        `${metric.expression} is ${metric.above === undefined ? 'below' : 'above'} ${metric.above ?? metric.below} for ${minutes(metric)}`
      )
    case 'errors':
      return errors && `${errors.percent} % or more of ${counted(errors.atLeast, 'call')} or more in ${minutes(errors)}`
    case 'latency':
      return (
        latency &&
        `p95 of ${latency.p95Ms} ms or more, of ${counted(latency.atLeast, 'call')} or more in ${minutes(latency)}`
      )
    case 'silent':
      return silent && `nothing for ${minutes(silent)}`
  }
}

const CONDITION_NAMES: Readonly<Record<ListCondition, string>> = {
  surfaces: 'surface',
  services: 'service',
  environments: 'environment',
  releases: 'release',
  types: 'type',
}

/** Returns the conditions of a rule, and when it sends, as sentences. */
export function conditionWords(rule: AlertRule, surfaces: readonly NamedSurface[]): string[] {
  const nameOf = (id: string) => surfaces.find(surface => surface.id === id)?.name ?? id
  const conditions = (Object.keys(CONDITION_NAMES) as ListCondition[]).flatMap(field => {
    const values = rule[field]?.map(value => (field === 'surfaces' ? nameOf(value) : value))
    return values ? [`${CONDITION_NAMES[field]} ${values.join(' or ')}`] : []
  })
  if (rule.minPeople !== undefined) conditions.push(`${counted(rule.minPeople, 'person', 'people')} or more`)
  const { everyMinutes, quietHours, resolved } = rule
  return [
    ...(conditions.length > 0 ? [`Only for ${conditions.join(', ')}.`] : []),
    ...(everyMinutes === undefined ? [] : [`At most one message in ${counted(everyMinutes, 'minute')}.`]),
    ...(quietHours ? [`Quiet from ${quietHours.from} to ${quietHours.to} (${quietHours.zone}).`] : []),
    ...(resolved === false ? ['Without messages about the end.'] : []),
  ]
}
