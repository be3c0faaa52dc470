import { z } from 'zod'
import { findingEntrySchema } from './change.ts'
import { REVISION_MAX } from './finding-rules.ts'

/** The most receivers of a workspace. */
export const RECEIVERS_MAX = 20
/** The most rules of a workspace. */
export const ALERT_RULES_MAX = 50
/** The most values of a condition of a rule. */
export const ALERT_CONDITIONS_MAX = 50
/** The most characters of a name or a value. */
export const ALERT_CHARACTERS = 200

/** The most minutes between two messages. */
export const EVERY_MINUTES_MAX = 1_440
/** A time of the day, `07:00`. */
export const TIME_OF_DAY = /^(?:[01]\d|2[0-3]):[0-5]\d$/

/** The ways in which receivers are reached. */
export const CHANNELS = ['webhook', 'slack', 'teams', 'pagerduty', 'email'] as const
/** A way in which a receiver is reached. */
export type Channel = (typeof CHANNELS)[number]

/** Kinds of events about a finding that rules can call for. */
export const FINDING_KINDS = [
  'finding.created',
  'finding.regressed',
  'finding.unignored',
  'finding.spiking',
  'finding.spreading',
  'finding.changed',
  'finding.commented',
] as const
/** Kinds of events about a value that is measured. */
export const MEASURED_KINDS = [
  'metric.threshold',
  'service.errors',
  'service.latency',
  'surface.silent',
  'pipeline.dead_letters',
  'pipeline.quota',
  'pipeline.late',
] as const
/** Kinds of events that rules can call for. */
export const CALLED_KINDS = [...FINDING_KINDS, ...MEASURED_KINDS] as const
/** A kind of event about a finding. */
export type FindingKind = (typeof FINDING_KINDS)[number]
/** A kind of event that a rule can call for. */
export type CalledKind = (typeof CALLED_KINDS)[number]

/** The longest time that a rule measures, in minutes. */
export const MEASURED_MINUTES_MAX = 1_440
/** The most characters of an expression over metrics. */
export const ALERT_EXPRESSION_CHARACTERS = 2_000

// Characters may have two UTF-16 units.
const text = z
  .string()
  .min(1)
  .max(2 * ALERT_CHARACTERS)
const texts = z.array(text).min(1).max(ALERT_CONDITIONS_MAX)

const receiverSchema = z.object({
  id: z.string().regex(/^rcv_[0-9a-f]{20}$/),
  /** Unique among the receivers of the workspace. Rules name receivers by it. */
  name: text,
  channel: z.enum(CHANNELS),
  /** The part of its target that may be shown. */
  address: z.string().max(1_024),
  /** With which a webhook with signatures of Ed25519 is verified. */
  publicKey: z.string().max(64).optional(),
  /** Its target and its secrets, sealed for this workspace and receiver (alerts/delivery/). */
  sealed: z.string().max(16_384),
  createdAt: z.iso.datetime(),
  /** False if its messages have no links that acknowledge, resolve or ignore. */
  actions: z.boolean().optional(),
  /** Present if nothing is sent to it any more. */
  disabled: z.object({ at: z.iso.datetime(), reason: z.string().max(500) }).optional(),
})
/** A receiver of alerts. */
export type Receiver = z.infer<typeof receiverSchema>

const minutes = z.int().min(1).max(MEASURED_MINUTES_MAX)
const count = z.int().min(1)

/** Measures of rules, by the field that has them. Each belongs to one kind (`ALERT_MEASURES`). */
const measures = {
  /** A finding occurs this many times as often as in the busiest five minutes of the same hour of the seven days before. */
  spiking: z.object({ times: z.number().min(1), atLeast: count }).optional(),
  /** A finding concerns more people in a time. */
  spreading: z.object({ people: count, minutes }).optional(),
  /** A value of a PromQL expression stays above or below a threshold for a time. */
  metric: z
    .object({
      expression: z
        .string()
        .min(1)
        .max(2 * ALERT_EXPRESSION_CHARACTERS),
      above: z.number().optional(),
      below: z.number().optional(),
      minutes,
    })
    .optional(),
  /** Calls that a service received have failed. */
  errors: z.object({ percent: z.number().min(0).max(100), minutes, atLeast: count }).optional(),
  /** The 95th percentile of the durations of the calls that a service received. */
  latency: z.object({ p95Ms: z.number().min(0), minutes, atLeast: count }).optional(),
  /** A surface that was sent something before is sent nothing. */
  silent: z.object({ minutes }).optional(),
}
/** A measure of a rule: a field of it. */
export type AlertMeasure = keyof typeof measures

/** The kind to which each field that measures belongs. */
export const ALERT_MEASURES = {
  spiking: 'finding.spiking',
  spreading: 'finding.spreading',
  metric: 'metric.threshold',
  errors: 'service.errors',
  latency: 'service.latency',
  silent: 'surface.silent',
} as const satisfies Record<AlertMeasure, CalledKind>

/** The measure of a rule for spiking findings that states none. */
export const DEFAULT_SPIKING = { times: 5, atLeast: 20 } as const

/** The conditions that a rule may have, by the beginning of the kind. */
const OF_FINDINGS = ['surfaces', 'services', 'environments', 'releases', 'types', 'minPeople'] as const
/** A condition of a rule. */
export type AlertCondition = (typeof OF_FINDINGS)[number]
const CONDITIONS: Readonly<Record<string, readonly AlertCondition[]>> = {
  finding: OF_FINDINGS,
  service: ['services', 'environments'],
  surface: ['surfaces'],
  pipeline: [],
  metric: [],
}
/** The conditions that events of a kind can meet. */
export function conditionsOf(kind: CalledKind): readonly AlertCondition[] {
  return CONDITIONS[kind.slice(0, kind.indexOf('.'))] ?? []
}

const alertRuleSchema = z.object({
  name: text,
  kinds: z.array(z.enum(CALLED_KINDS)).min(1).max(CALLED_KINDS.length),
  /** Names of receivers. All of them if left out. */
  receivers: z.array(text).min(1).max(RECEIVERS_MAX).optional(),
  /** Ids of surfaces. A value of each condition that is present matches. */
  surfaces: texts.optional(),
  services: texts.optional(),
  environments: texts.optional(),
  /** Versions of the latest occurrence. */
  releases: texts.optional(),
  /** Types of exceptions. */
  types: texts.optional(),
  /** The least number of people whom a finding concerned. */
  minPeople: count.optional(),
  ...measures,
  /** False if the end of a condition, and the resolution of a finding, send nothing. */
  resolved: z.boolean().optional(),
  /** Least time between two messages to a receiver. Events meanwhile wait for the next one. */
  everyMinutes: z.int().min(1).max(EVERY_MINUTES_MAX).optional(),
  /** Hours of the day in which nothing is sent, such as 22:00 to 07:00 in a time zone. Events wait for their end. */
  quietHours: z
    .object({ from: z.string().regex(TIME_OF_DAY), to: z.string().regex(TIME_OF_DAY), zone: z.string().max(64) })
    .optional(),
})
/** A rule that calls receivers. */
export type AlertRule = z.infer<typeof alertRuleSchema>

/** Record of the receivers and rules of a workspace. */
export const alertsSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  /** As that of the rules of grouping. 0 is that of no record, for which `DEFAULT_ALERT_RULES` hold. */
  revision: z.int().min(1).max(REVISION_MAX),
  changedAt: z.iso.datetime(),
  receivers: z.array(receiverSchema).max(RECEIVERS_MAX),
  rules: z.array(alertRuleSchema).max(ALERT_RULES_MAX),
})
/** Record of the receivers and rules of a workspace. */
export type Alerts = z.infer<typeof alertsSchema>

/** The rules of a workspace that has no record: its first receiver is called for these. */
export const DEFAULT_ALERT_RULES: readonly AlertRule[] = [
  { name: 'New and returning findings', kinds: ['finding.created', 'finding.regressed', 'finding.unignored'] },
  { name: 'Findings that spike', kinds: ['finding.spiking'], everyMinutes: 30 },
  { name: 'The pipeline', kinds: ['pipeline.dead_letters', 'pipeline.quota', 'pipeline.late'] },
]

/** A value that a rule measures, as events have it (schemas/http/alerts/events.ts). */
export const measuredSchema = z.object({
  what: z.string(),
  value: z.number(),
  threshold: z.number(),
  unit: z.string(),
  minutes: z.int().min(1),
  expression: z.string().optional(),
})
/** The fields of every occasion. */
const occasionFields = {
  /** The same each time the same thing is found, so that a receiver can tell a repetition. */
  id: z.string().regex(/^evt_[a-z2-7]{26}$/),
  workspaceId: z.string(),
  surfaceId: z.string().optional(),
  at: z.iso.datetime(),
  /** Whether a condition has ended. */
  resolved: z.boolean().optional(),
}
const findingOccasionSchema = z.object({
  ...occasionFields,
  kind: z.enum(FINDING_KINDS),
  findingId: z.string(),
  /** Present if a member caused it. */
  entry: findingEntrySchema.optional(),
  /** Present if a rule measures it: that rule alone calls for it. */
  ruleName: z.string().optional(),
  measured: measuredSchema.optional(),
})
const measuredOccasionSchema = z.object({
  ...occasionFields,
  kind: z.enum(MEASURED_KINDS),
  /** The rule that measures it, which alone calls for it. */
  ruleName: z.string(),
  measured: measuredSchema,
  service: z.string().optional(),
  environment: z.string().optional(),
})
/** Something that receivers may be called for. It waits in Redis until its deliveries are queued. */
export const occasionSchema = z.discriminatedUnion('kind', [findingOccasionSchema, measuredOccasionSchema])
/** Something about a finding that receivers may be called for. */
export type FindingOccasion = z.infer<typeof findingOccasionSchema>
/** A value that is measured, for which receivers may be called. */
export type MeasuredOccasion = z.infer<typeof measuredOccasionSchema>
/** Something that receivers may be called for. */
export type Occasion = z.infer<typeof occasionSchema>

/** How an attempt to send a delivery ended. `refused` is never sent, and `gone` is the answer of a receiver that wants no more. */
export const ATTEMPT_RESULTS = ['delivered', 'failed', 'refused', 'gone'] as const

/** Id of a delivery, which is that of its message: of an event and its receiver, or of several events. */
export const DELIVERY_ID = /^(?:evt_[a-z2-7]{26}_rcv_[0-9a-f]{20}|msg_[a-z2-7]{26})$/

/** Record of an attempt to send a delivery. */
export const attemptSchema = z.object({
  deliveryId: z.string(),
  at: z.iso.datetime(),
  receiverId: z.string(),
  receiverName: z.string(),
  ruleName: z.string(),
  events: z.array(z.object({ id: z.string(), type: z.string(), findingId: z.string().optional() })),
  /** Counts from 1. */
  attempt: z.int().min(1),
  result: z.enum(ATTEMPT_RESULTS),
  /** Status of HTTP, or reply code of SMTP. */
  status: z.int().optional(),
  reason: z.string().optional(),
  /** Beginning of the answer. */
  answer: z.string().optional(),
  durationMs: z.number().min(0),
  /** Present if it is repeated. */
  nextAttemptAt: z.iso.datetime().optional(),
})
/** Record of an attempt to send a delivery. */
export type Attempt = z.infer<typeof attemptSchema>
