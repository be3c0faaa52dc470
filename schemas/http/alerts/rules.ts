import { z } from 'zod'
import {
  ALERT_CHARACTERS,
  ALERT_CONDITIONS_MAX,
  ALERT_EXPRESSION_CHARACTERS,
  ALERT_MEASURES,
  type AlertCondition,
  type AlertMeasure,
  CALLED_KINDS,
  type CalledKind,
  conditionsOf,
  DEFAULT_SPIKING,
  EVERY_MINUTES_MAX,
  MEASURED_MINUTES_MAX,
  TIME_OF_DAY,
} from '../../records/alerts.ts'
import { exactObject, listOf, textOf } from '../fields.ts'

const text = textOf(1, ALERT_CHARACTERS)
const conditions = listOf(text, ALERT_CONDITIONS_MAX, 'must be a list')
  .refine(values => values.length > 0, 'must not be empty')
  .optional()
const kind = z.enum(CALLED_KINDS)
const minutes = z.int().min(1).max(MEASURED_MINUTES_MAX)
const count = z.int().min(1).max(1e9)
const value = z.number().min(-1e300).max(1e300)

const timeOfDay = z.string().regex(TIME_OF_DAY, 'must be a time such as 07:00')
const zoneSchema = textOf(1, 64).refine(isZone, 'must be a time zone such as Europe/Berlin')

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false // The constructor refuses unknown names.
  }
}

const metricSchema = exactObject({
  expression: textOf(1, ALERT_EXPRESSION_CHARACTERS).meta({
    description: 'PromQL. Each series of its result is compared by itself.',
  }),
  above: value.optional(),
  below: value.optional(),
  minutes: minutes.meta({ description: 'How long it stays there before receivers are called.' }),
}).refine(({ above, below }) => (above === undefined) !== (below === undefined), 'must have either above or below')

/** Measures of rules, by the field that has them. Each belongs to one kind. */
const measures = {
  spiking: exactObject({ times: z.number().min(1).max(1_000), atLeast: count })
    .optional()
    .meta({
      description: `For \`finding.spiking\`: the factor to the busiest five minutes in the same hour of the seven days before, and the least number of occurrences in five minutes. ${DEFAULT_SPIKING.times} and ${DEFAULT_SPIKING.atLeast} by default.`,
    }),
  spreading: exactObject({ people: count, minutes })
    .optional()
    .meta({ description: 'For `finding.spreading`: it concerned at least this many people in this time.' }),
  metric: metricSchema.optional().meta({ description: 'For `metric.threshold`.' }),
  errors: exactObject({ percent: z.number().min(0.001).max(100), minutes, atLeast: count })
    .optional()
    .meta({
      description:
        'For `service.errors`: the share of received calls that failed is at least this, of at least this many calls.',
    }),
  latency: exactObject({ p95Ms: z.number().min(0.001).max(1e9), minutes, atLeast: count })
    .optional()
    .meta({
      description:
        'For `service.latency`: the 95th percentile of received calls is at least this, of at least this many calls.',
    }),
  silent: exactObject({ minutes })
    .optional()
    .meta({ description: 'For `surface.silent`: it was sent nothing in this time.' }),
}

const ruleShape = {
  name: text.meta({ description: 'Messages have it. Unique among the rules.' }),
  kinds: z.array(kind).min(1, 'must not be empty').max(CALLED_KINDS.length),
  receivers: conditions.meta({ description: 'Names of receivers. All of them by default.' }),
  surfaces: conditions.meta({ description: 'Ids of surfaces.' }),
  services: conditions.meta({ description: 'Values of `service.name`.' }),
  environments: conditions.meta({ description: 'Values of `deployment.environment.name`.' }),
  releases: conditions.meta({ description: 'Values of `service.version`, that of the latest occurrence.' }),
  types: conditions.meta({ description: 'Types of exceptions, or titles of failed spans.' }),
  minPeople: count.optional().meta({ description: 'The least number of people whom the finding concerned.' }),
  ...measures,
  everyMinutes: z.int().min(1).max(EVERY_MINUTES_MAX).optional().meta({
    description: 'Least time between two messages to a receiver. Events meanwhile wait for the next one.',
  }),
  quietHours: exactObject({ from: timeOfDay, to: timeOfDay, zone: zoneSchema })
    .optional()
    .meta({ description: 'Hours of the day in which nothing is sent. Events wait for their end.' }),
  resolved: z.boolean().optional().meta({
    description: 'Whether the end of a condition is sent too, and that a finding was resolved. True by default.',
  }),
}
const CONDITIONS = ['surfaces', 'services', 'environments', 'releases', 'types', 'minPeople'] as const

/** A rule of a request, or of an answer. */
export const alertRuleSchema = exactObject(ruleShape)
  .superRefine((rule, context) => {
    const refuse = (field: AlertCondition | AlertMeasure, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message })
    for (const field of CONDITIONS) {
      const other = rule[field] === undefined ? undefined : rule.kinds.find(one => !conditionsOf(one).includes(field))
      if (other !== undefined) refuse(field, `must be left out with the kind ${other}`)
    }
    for (const [name, of] of Object.entries(ALERT_MEASURES)) {
      const field = name as AlertMeasure
      const isOf = (rule.kinds as readonly CalledKind[]).includes(of)
      if (!isOf && rule[field] !== undefined) refuse(field, `must be left out without the kind ${of}`)
      if (isOf && rule[field] === undefined && field !== 'spiking') refuse(field, `is required with the kind ${of}`)
    }
  })
  .meta({ id: 'AlertRule', outputId: 'KeptAlertRule' })
