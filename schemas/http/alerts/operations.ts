import { z } from 'zod'
import {
  ALERT_CHARACTERS,
  ALERT_CONDITIONS_MAX,
  ALERT_RULES_MAX,
  ATTEMPT_RESULTS,
  CALLED_KINDS,
  CHANNELS,
  DEFAULT_ALERT_RULES,
  EVERY_MINUTES_MAX,
  RECEIVERS_MAX,
  TIME_OF_DAY,
} from '../../records/alerts.ts'
import { REVISION_MAX } from '../../records/finding-rules.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE_TIMES } from '../example-values.ts'
import { emailSchema, exactObject, listOf, textOf } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'

const BODY_BYTES = 256 * 1024
const URL_CHARACTERS = 2_048
/** Most addresses of a receiver of e-mail. */
const ADDRESSES_MAX = 20
/** Most attempts of a list. */
export const LISTED_ATTEMPTS_MAX = 1_000

const text = textOf(1, ALERT_CHARACTERS)
const url = z.url({ protocol: /^https?$/, error: 'must be a URL that begins with https://' }).max(URL_CHARACTERS)
const conditions = listOf(text, ALERT_CONDITIONS_MAX, 'must be a list')
  .refine(values => values.length > 0, 'must not be empty')
  .optional()
const revision = z.int().min(0).max(REVISION_MAX)
const kind = z.enum(CALLED_KINDS)
const channel = z.enum(CHANNELS)

const timeOfDay = z.string().regex(TIME_OF_DAY, 'must be a time such as 07:00')
const zoneSchema = textOf(1, 64).refine(isZone, 'must be a time zone such as Europe/Berlin')

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false // The constructor refuses unknown names.
  }
}

const ruleShape = {
  name: text.meta({ description: 'Messages have it. Unique among the rules.' }),
  kinds: z.array(kind).min(1, 'must not be empty').max(CALLED_KINDS.length),
  receivers: conditions.meta({ description: 'Names of receivers. All of them by default.' }),
  surfaces: conditions.meta({ description: 'Ids of surfaces.' }),
  services: conditions.meta({ description: 'Values of `service.name`.' }),
  environments: conditions.meta({ description: 'Values of `deployment.environment.name`.' }),
  types: conditions.meta({ description: 'Types of exceptions, or titles of failed spans.' }),
  everyMinutes: z.int().min(1).max(EVERY_MINUTES_MAX).optional().meta({
    description: 'Least time between two messages to a receiver. Events meanwhile wait for the next one.',
  }),
  quietHours: exactObject({ from: timeOfDay, to: timeOfDay, zone: zoneSchema })
    .optional()
    .meta({ description: 'Hours of the day in which nothing is sent. Events wait for their end.' }),
}
const ruleSchema = exactObject(ruleShape).meta({ id: 'AlertRule' })

const NEEDS = { webhook: 'url', slack: 'url', teams: 'url', pagerduty: 'routingKey', email: 'to' } as const

const receiverSchema = exactObject({
  name: text.meta({ description: 'Unique among the receivers. One with a new name is a new receiver.' }),
  channel,
  url: url.optional().meta({ description: 'For webhook, slack and teams. A known receiver keeps its own by default.' }),
  routingKey: textOf(1, 64)
    .optional()
    .meta({ description: 'For pagerduty: the integration key of an Events API v2 integration.' }),
  to: listOf(emailSchema, ADDRESSES_MAX, 'must be a list of addresses')
    .refine(to => to.length > 0, 'must not be empty')
    .optional()
    .meta({ description: 'For email.' }),
  rotateSecret: z.boolean().optional().meta({
    description: 'For webhook: makes a new secret, and signs with both until the next one is made.',
  }),
  disabled: z
    .boolean()
    .optional()
    .meta({ description: 'Whether nothing is sent to it. A receiver that answers 410 is disabled.' }),
}).superRefine((receiver, context) => {
  for (const field of ['url', 'routingKey', 'to'] as const) {
    if (receiver[field] !== undefined && field !== NEEDS[receiver.channel])
      context.addIssue({
        code: 'custom',
        path: [field],
        message: `does not belong to a receiver of the channel ${receiver.channel}`,
      })
  }
  if (receiver.rotateSecret && receiver.channel !== 'webhook')
    context.addIssue({ code: 'custom', path: ['rotateSecret'], message: 'only a webhook has a secret' })
})
/** A receiver in a request. */
export type RequestedReceiver = z.infer<typeof receiverSchema>
/** The field that a new receiver of a channel must have. */
export const targetFieldOf = (of: RequestedReceiver['channel']): (typeof NEEDS)[keyof typeof NEEDS] => NEEDS[of]

const named = (things: readonly { readonly name: string }[]) =>
  new Set(things.map(({ name }) => name)).size === things.length

/** Body of PUT /v3/alerts. */
export const replaceAlertsSchema = exactObject({
  revision: revision.meta({ description: 'The revision of what is replaced.' }),
  receivers: listOf(receiverSchema, RECEIVERS_MAX, 'must be a list of receivers').refine(
    named,
    'must have names that differ',
  ),
  rules: listOf(ruleSchema, ALERT_RULES_MAX, 'must be a list of rules').refine(named, 'must have names that differ'),
})
  .superRefine(({ receivers, rules }, context) => {
    const known = new Set(receivers.map(({ name }) => name))
    for (const [i, rule] of rules.entries()) {
      const unknown = rule.receivers?.find(name => !known.has(name))
      if (unknown !== undefined)
        context.addIssue({
          code: 'custom',
          path: ['rules', i, 'receivers'],
          message: 'must name receivers of the list',
        })
    }
  })
  .meta({ id: 'ReplaceAlertsRequest' })

const texts = z.array(z.string()).optional()
const shownReceiverSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    channel,
    address: z.string().meta({ description: 'The part of its target that may be shown.' }),
    createdAt: z.iso.datetime(),
    disabled: z.strictObject({ at: z.iso.datetime(), reason: z.string() }).optional(),
    secret: z.string().optional().meta({
      description: 'The secret of a webhook, in the response to the request that made it, and never again.',
    }),
  })
  .meta({ id: 'AlertReceiver' })

/** Response of GET and PUT /v3/alerts. */
export const alertsAnswerSchema = z
  .strictObject({
    revision: revision.meta({ description: 'Grows with each change. 0 if nothing was ever changed.' }),
    changedAt: z.iso.datetime().optional(),
    receivers: z.array(shownReceiverSchema),
    rules: z.array(
      z
        .strictObject({
          ...{ name: z.string(), kinds: z.array(kind), receivers: texts },
          ...{ surfaces: texts, services: texts, environments: texts, types: texts },
          everyMinutes: z.int().optional(),
          quietHours: z.strictObject({ from: z.string(), to: z.string(), zone: z.string() }).optional(),
        })
        .meta({ id: 'KeptAlertRule' }),
    ),
  })
  .meta({ id: 'Alerts' })
/** Response of GET and PUT /v3/alerts. */
export type AlertsAnswer = z.infer<typeof alertsAnswerSchema>

/** Body of POST /v3/alerts/test. */
export const testReceiverSchema = exactObject({
  receiver: text.meta({ description: 'The name of a receiver.' }),
}).meta({ id: 'TestReceiverRequest' })

const outcomeShape = {
  result: z.enum(ATTEMPT_RESULTS).meta({
    description: '`failed` is repeated, `refused` never is, and `gone` disables the receiver.',
  }),
  status: z.int().optional().meta({ description: 'Status of HTTP, or reply code of SMTP.' }),
  reason: z.string().optional(),
  answer: z.string().optional().meta({ description: 'The first 1,000 characters of the answer.' }),
  durationMs: z.number().min(0),
}

/** Response of POST /v3/alerts/test. */
export const testedSchema = z.strictObject(outcomeShape).meta({ id: 'TestedReceiver' })
/** Response of POST /v3/alerts/test. */
export type Tested = z.infer<typeof testedSchema>

/** Response of GET /v3/alerts/deliveries. */
export const deliveriesAnswerSchema = z
  .strictObject({
    attempts: z.array(
      z
        .strictObject({
          deliveryId: z.string(),
          at: z.iso.datetime(),
          receiverId: z.string(),
          receiverName: z.string(),
          ruleName: z.string(),
          events: z.array(z.strictObject({ id: z.string(), type: z.string(), findingId: z.string().optional() })),
          attempt: z.int().min(1).meta({ description: 'Counts from 1.' }),
          ...outcomeShape,
          nextAttemptAt: z.iso.datetime().optional().meta({ description: 'Absent if it is not repeated.' }),
        })
        .meta({ id: 'DeliveryAttempt' }),
    ),
  })
  .meta({ id: 'DeliveryAttempts' })
/** Response of GET /v3/alerts/deliveries. */
export type DeliveriesAnswer = z.infer<typeof deliveriesAnswerSchema>

const rules = DEFAULT_ALERT_RULES.map(({ name, kinds }) => ({ name, kinds: [...kinds] }))
const shown = {
  id: 'rcv_5f2c0a9b1e3d4c6a7f80',
  name: 'on-call',
  channel: 'webhook' as const,
  address: 'https://hooks.example/penstock',
  createdAt: EXAMPLE_TIMES.createdAt,
}
const SERVICE = { service: 'operation', tag: 'alerts' } as const

/** Reads receivers and rules (docs/api/alerts.md). */
export const readAlerts: PermittedOperation = {
  operationId: 'readAlerts',
  method: 'GET',
  path: '/v3/alerts',
  ...SERVICE,
  summary: 'Read the receivers of alerts, and the rules that call them',
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'Receivers and rules.',
    contents: { 'application/json': { schema: alertsAnswerSchema, example: { revision: 0, receivers: [], rules } } },
  },
  problems: callerProblems,
}

/** Replaces receivers and rules (docs/api/alerts.md). */
export const replaceAlerts: PermittedOperation = {
  operationId: 'replaceAlerts',
  method: 'PUT',
  path: '/v3/alerts',
  ...SERVICE,
  summary: 'Replace the receivers of alerts, and the rules that call them',
  description:
    'A receiver is known by its name: without a target it keeps its own, with its secret. Refused with 409 if both have another revision than the one that was read.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: BODY_BYTES,
    contents: {
      'application/json': {
        schema: replaceAlertsSchema,
        example: {
          revision: 0,
          receivers: [{ name: 'on-call', channel: 'webhook', url: 'https://hooks.example/penstock' }],
          rules,
        },
      },
    },
  },
  success: {
    status: 200,
    description: 'Receivers and rules after the change. New webhooks have their secret.',
    contents: {
      'application/json': {
        schema: alertsAnswerSchema,
        example: {
          revision: 28_512_000,
          changedAt: EXAMPLE_TIMES.createdAt,
          receivers: [shown],
          rules,
        },
      },
    },
  },
  problems: [...callerProblems, { code: 'REQUEST_INVALID', status: 409 }],
}

/** Sends a test (docs/api/alerts.md#test). */
export const testReceiver: PermittedOperation = {
  operationId: 'testReceiver',
  method: 'POST',
  path: '/v3/alerts/test',
  ...SERVICE,
  summary: 'Send a test to a receiver of alerts',
  description: 'Makes one attempt, and states how it ended.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: 4 * 1024,
    contents: { 'application/json': { schema: testReceiverSchema, example: { receiver: 'on-call' } } },
  },
  success: {
    status: 200,
    description: 'How the attempt ended.',
    contents: {
      'application/json': {
        schema: testedSchema,
        example: { result: 'failed', reason: 'the name of the receiver has no address', durationMs: 12 },
      },
    },
  },
  problems: callerProblems,
}

/** Lists attempts (docs/api/alerts.md#deliveries). */
export const listDeliveries: PermittedOperation = {
  operationId: 'listDeliveries',
  method: 'GET',
  path: '/v3/alerts/deliveries',
  ...SERVICE,
  summary: 'List the last attempts to send alerts',
  description: `At most ${LISTED_ATTEMPTS_MAX}, the latest first. They are kept for 30 days.`,
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'The attempts.',
    contents: {
      'application/json': {
        schema: deliveriesAnswerSchema,
        example: {
          attempts: [
            {
              deliveryId: 'evt_a2b3c4d5e6f7a2b3c4d5e6f7a2_rcv_5f2c0a9b1e3d4c6a7f80',
              at: EXAMPLE_TIMES.createdAt,
              receiverId: shown.id,
              receiverName: shown.name,
              ruleName: rules[0]?.name ?? '',
              events: [
                { id: 'evt_a2b3c4d5e6f7a2b3c4d5e6f7a2', type: 'finding.created', findingId: `fnd_${'a'.repeat(26)}` },
              ],
              attempt: 1,
              result: 'delivered',
              status: 204,
              durationMs: 84,
            },
          ],
        },
      },
    },
  },
  problems: callerProblems,
}
