import { z } from 'zod'
import { FINDING_KINDS, MEASURED_KINDS } from '../../records/alerts.ts'
import { COMMENT_MAX_CHARACTERS, FINDING_ACTIONS } from '../../records/change.ts'
import { findingIdSchema } from '../findings/schemas.ts'

/** Most exceptions of `chain`. */
const CHAIN_MAX = 8
/** Most characters of a URL. */
const URL_MAX_CHARACTERS = 2_000

const name = z.string().max(200)
const message = z.string().max(1_000)
const instant = z.iso.datetime()
const url = z.url({ protocol: /^https?$/ }).max(URL_MAX_CHARACTERS)
const count = z.int().min(0)
const traceIdSchema = z.string().regex(/^[0-9a-f]{32}$/)

/** Fields of the data of every event. */
const commonFields = {
  id: z
    .string()
    .regex(/^evt_[a-z2-7]{26}$/)
    .meta({ description: 'Id of the event. It is the same each time the event is sent.' }),
  workspaceId: name,
  surface: z.strictObject({ id: name, name }).optional().meta({ description: 'Absent if it concerns no surface.' }),
  resolved: z.boolean().meta({ description: 'Whether the condition has ended. False if it has begun or has no end.' }),
}

/** A value that is compared with a threshold. */
const measuredSchema = z
  .strictObject({
    what: name.meta({ description: 'The name of the value, such as `share of failed calls`.' }),
    value: z.number().meta({ description: 'At the end of a condition, the last value that met it.' }),
    threshold: z.number(),
    unit: z.string().max(30).meta({ description: 'Such as `%`. Empty if it has none.' }),
    minutes: z.int().min(1).meta({ description: 'Length of the time that the value is of.' }),
    expression: z.string().max(2_000).optional().meta({ description: 'In PromQL, if the value is that of one.' }),
  })
  .meta({ description: 'A value that is compared with a threshold.' })
/** A value that is compared with a threshold. */
export type Measured = z.infer<typeof measuredSchema>

const personSchema = z.strictObject({ userId: name, name: name.optional() })
/** A user, with the name if it is known. */
export type Person = z.infer<typeof personSchema>

/** Something that a member did with a finding. */
const changedSchema = z
  .strictObject({
    by: personSchema
      .nullable()
      .meta({ description: 'Null for an operator of the installation, and for the link of a message.' }),
    via: z
      .strictObject({ receiver: name })
      .optional()
      .meta({ description: 'Present if the link of a message did it: the name of the receiver of the message.' }),
    action: z.enum(FINDING_ACTIONS),
    assignee: personSchema.optional().meta({ description: 'To whom it was assigned.' }),
    text: z.string().max(COMMENT_MAX_CHARACTERS).optional().meta({ description: 'The comment.' }),
    findingId: findingIdSchema.optional().meta({ description: 'The other finding of a merge or a split.' }),
  })
  .meta({ description: 'Something that a member did with the finding.' })
/** Something that a member did with a finding. */
export type Changed = z.infer<typeof changedSchema>

/** The finding of an event, as it was when the event occurred. */
const alertFindingSchema = z
  .strictObject({
    id: findingIdSchema,
    type: name,
    message,
    service: name.meta({ description: 'The `service.name`. Empty if none was sent.' }),
    environment: name.optional(),
    release: name.optional().meta({ description: 'The version of the latest occurrence.' }),
    occurrences: count,
    sessions: count.meta({ description: 'In how many sessions it occurred, within about 1 %.' }),
    people: count.meta({
      description: 'How many identified users it concerned, within about 1 %. Those of at most 100,000 sessions count.',
    }),
    firstSeenAt: instant,
    lastSeenAt: instant,
  })
  .meta({ id: 'AlertFinding', description: 'The finding, as it was when the event occurred.' })

/** An event about a finding. Absent fields are left out, never null. */
const findingEventSchema = z
  .strictObject({
    type: z.enum(FINDING_KINDS),
    timestamp: instant,
    data: z.strictObject({
      ...commonFields,
      finding: alertFindingSchema,
      measured: measuredSchema.optional().meta({ description: 'With `finding.spiking` and `finding.spreading`.' }),
      changed: changedSchema.optional().meta({ description: 'With `finding.changed` and `finding.commented`.' }),
      frame: z
        .strictObject({
          function: name.meta({ description: 'Empty outside of functions.' }),
          file: z.string().max(500),
          line: z.int().min(0).meta({ description: 'Counts from 1, and is 0 where the stack names none.' }),
          sourceLine: name.optional(),
        })
        .optional()
        .meta({ description: 'The innermost frame of the application.' }),
      chain: z
        .array(z.strictObject({ type: name, message }))
        .max(CHAIN_MAX)
        .meta({ description: 'The exceptions behind it, the immediate cause first.' }),
      trace: traceIdSchema.optional(),
      recording: z.strictObject({ sessionId: z.string().max(1_024), at: instant }).optional(),
      links: z
        .strictObject({
          finding: url,
          act: url.optional().meta({
            description:
              'A page that acknowledges, resolves or ignores the finding without signing in, for seven days. Keep it secret.',
          }),
          trace: url.optional(),
          recording: url.optional(),
        })
        .meta({ description: 'Pages of the console.' }),
    }),
  })
  .meta({ id: 'FindingEvent' })
/** An event about a finding. */
export type FindingEvent = z.infer<typeof findingEventSchema>

/** An event about a value that is measured. */
const measuredEventSchema = z
  .strictObject({
    type: z.enum(MEASURED_KINDS),
    timestamp: instant,
    data: z.strictObject({
      ...commonFields,
      service: name.optional().meta({ description: 'The `service.name`, if the value is that of one service.' }),
      environment: name.optional(),
      measured: measuredSchema,
      links: z.strictObject({ chart: url }).meta({ description: 'The page of the console that shows the value.' }),
    }),
  })
  .meta({ id: 'MeasuredEvent' })
/** An event about a value that is measured. */
export type MeasuredEvent = z.infer<typeof measuredEventSchema>

/** An event that rules call for. */
export type CalledEvent = FindingEvent | MeasuredEvent

/** An event with which a member tries a rule or a webhook. */
const testEventSchema = z
  .strictObject({ type: z.literal('test'), timestamp: instant, data: z.strictObject(commonFields) })
  .meta({ id: 'TestEvent' })

/**
 * An event, and the body of the webhook that sends it: `type`, `timestamp` (when it occurred) and `data`, as Standard Webhooks
 * 1.0 recommends (spec/standard-webhooks.md, "Payload structure").
 */
export const alertEventSchema = z
  .discriminatedUnion('type', [findingEventSchema, measuredEventSchema, testEventSchema])
  .meta({ id: 'AlertEvent', description: 'The body of a webhook.' })
/** An event, and the body of the webhook that sends it. */
export type AlertEvent = z.infer<typeof alertEventSchema>
/** Type of an event. */
export type AlertEventType = AlertEvent['type']
