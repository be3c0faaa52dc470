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

/** Kinds of events that rules can call for. */
export const CALLED_KINDS = [
  'finding.created',
  'finding.regressed',
  'finding.unignored',
  'finding.changed',
  'finding.commented',
] as const
/** A kind of event that a rule can call for. */
export type CalledKind = (typeof CALLED_KINDS)[number]

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
  /** Its target and its secrets, sealed for this workspace and receiver (alerts/delivery/). */
  sealed: z.string().max(16_384),
  createdAt: z.iso.datetime(),
  /** Present if nothing is sent to it any more. */
  disabled: z.object({ at: z.iso.datetime(), reason: z.string().max(500) }).optional(),
})
/** A receiver of alerts. */
export type Receiver = z.infer<typeof receiverSchema>

const alertRuleSchema = z.object({
  name: text,
  kinds: z.array(z.enum(CALLED_KINDS)).min(1).max(CALLED_KINDS.length),
  /** Names of receivers. All of them if left out. */
  receivers: z.array(text).min(1).max(RECEIVERS_MAX).optional(),
  /** Ids of surfaces. A value of each condition that is present matches. */
  surfaces: texts.optional(),
  services: texts.optional(),
  environments: texts.optional(),
  /** Types of exceptions. */
  types: texts.optional(),
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

/** The rules of a workspace that has no record: its first receiver is called for what is new or came back. */
export const DEFAULT_ALERT_RULES: readonly AlertRule[] = [
  {
    name: 'New and returning findings',
    kinds: ['finding.created', 'finding.regressed', 'finding.unignored'],
  },
]

/** Something that receivers may be called for. It waits in Redis until its deliveries are queued (alerts/occasions/). */
export const occasionSchema = z.object({
  /** The same each time the same thing is found, so that a receiver can tell a repetition. */
  id: z.string().regex(/^evt_[a-z2-7]{26}$/),
  kind: z.enum(CALLED_KINDS),
  workspaceId: z.string(),
  findingId: z.string(),
  /** Present if exceptions caused it: the surface of the first. */
  surfaceId: z.string().optional(),
  at: z.iso.datetime(),
  /** Present if a member caused it. */
  entry: findingEntrySchema.optional(),
})
/** Something that receivers may be called for. */
export type Occasion = z.infer<typeof occasionSchema>

/** How an attempt to send a delivery ended. `refused` is never sent, and `gone` is the answer of a receiver that wants no more. */
export const ATTEMPT_RESULTS = ['delivered', 'failed', 'refused', 'gone'] as const

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
