import { z } from 'zod'
import { ALERT_CHARACTERS, ATTEMPT_RESULTS, DEFAULT_ALERT_RULES, DELIVERY_ID } from '../../records/alerts.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, textOf } from '../fields.ts'
import { findingIdSchema } from '../findings/schemas.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageLimit } from '../page.ts'
import { callerProblems } from '../problem-sets.ts'
import { alertEventSchema } from './events.ts'
import { EXAMPLE_EVENTS } from './example-events.ts'
import { EXAMPLE_RECEIVER } from './receivers.ts'

/** Most attempts of a list. */
export const LISTED_ATTEMPTS_MAX = 1_000
const LISTED_BY_DEFAULT = 100

/** Query of GET /v3/alerts/deliveries. */
export const listDeliveriesQuerySchema = z.object({
  findingId: findingIdSchema
    .optional()
    .meta({ description: 'Attempts to send events about this finding.', example: EXAMPLE.findingId }),
  receiver: textOf(1, ALERT_CHARACTERS).optional().meta({ description: 'The name of a receiver.', example: 'on-call' }),
  limit: pageLimit(LISTED_ATTEMPTS_MAX, LISTED_BY_DEFAULT),
})

const stateSchema = z.enum(['waiting', 'delivered', 'parked', 'ended']).meta({
  id: 'DeliveryState',
  description:
    '`waiting` is attempted again. `parked` had its last attempt, and `ended` is not repeated for another reason: both can be replayed.',
})
/** State of a delivery. */
export type DeliveryState = z.infer<typeof stateSchema>

/** Body of POST /v3/alerts/test. */
export const testReceiverSchema = exactObject({
  receiver: textOf(1, ALERT_CHARACTERS).meta({ description: 'The name of a receiver.' }),
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

const attemptSchema = z
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
    state: stateSchema.meta({ description: 'That of the delivery.' }),
  })
  .meta({ id: 'DeliveryAttempt' })

/** Response of GET /v3/alerts/deliveries. */
export const deliveriesAnswerSchema = z
  .strictObject({ attempts: z.array(attemptSchema) })
  .meta({ id: 'DeliveryAttempts' })
/** Response of GET /v3/alerts/deliveries. */
export type DeliveriesAnswer = z.infer<typeof deliveriesAnswerSchema>

/** Response of GET /v3/alerts/deliveries/{deliveryId}. */
export const deliverySchema = z
  .strictObject({
    deliveryId: z.string(),
    receiverId: z.string(),
    receiverName: z.string(),
    ruleName: z.string(),
    state: stateSchema,
    events: z.array(alertEventSchema).meta({
      description: 'The bodies that a webhook gets. Empty once the message is not kept any more.',
    }),
    attempts: z.array(attemptSchema).meta({ description: 'The latest first.' }),
    nextAttemptAt: z.iso.datetime().optional().meta({ description: 'With `waiting`, if it is not due yet.' }),
  })
  .meta({ id: 'Delivery' })
/** Response of GET /v3/alerts/deliveries/{deliveryId}. */
export type DeliveryAnswer = z.infer<typeof deliverySchema>

/** Body of POST /v3/alerts/deliveries/{deliveryId}/replay. */
export const replayDeliverySchema = exactObject({}).meta({ id: 'ReplayDeliveryRequest' })

const EXAMPLE_DELIVERY_ID = `${EXAMPLE_EVENTS['finding.created'].data.id}_${EXAMPLE_RECEIVER.id}`
const EXAMPLE_ATTEMPT = {
  deliveryId: EXAMPLE_DELIVERY_ID,
  at: EXAMPLE_TIMES.createdAt,
  receiverId: EXAMPLE_RECEIVER.id,
  receiverName: EXAMPLE_RECEIVER.name,
  ruleName: DEFAULT_ALERT_RULES[0]?.name ?? '',
  events: [
    {
      id: EXAMPLE_EVENTS['finding.created'].data.id,
      type: 'finding.created',
      findingId: EXAMPLE.findingId,
    },
  ],
  attempt: 1,
  result: 'failed' as const,
  status: 503,
  reason: 'the receiver answered 503',
  durationMs: 84,
  nextAttemptAt: EXAMPLE_TIMES.completedAt,
  state: 'waiting' as const,
}
const { deliveryId, receiverId, receiverName, ruleName } = EXAMPLE_ATTEMPT
const EXAMPLE_DELIVERY = {
  ...{ deliveryId, receiverId, receiverName, ruleName },
  state: 'waiting',
  events: [EXAMPLE_EVENTS['finding.created']],
  attempts: [EXAMPLE_ATTEMPT],
}
const deliveryPath = z.object({
  deliveryId: z.string().regex(DELIVERY_ID).meta({
    description: 'The delivery. It is the `webhook-id` of its attempts.',
    example: EXAMPLE_DELIVERY_ID,
  }),
})

const SERVICE = { service: 'operation', tag: 'alerts' } as const

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
  description: 'The latest first. At most 1,000 are kept, for 30 days.',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: listDeliveriesQuerySchema },
  success: {
    status: 200,
    description: 'The attempts.',
    contents: {
      'application/json': {
        schema: deliveriesAnswerSchema,
        example: { attempts: [EXAMPLE_ATTEMPT] },
      },
    },
  },
  problems: callerProblems,
}

/** Reads a delivery (docs/api/alerts.md#deliveries). */
export const readDelivery: PermittedOperation = {
  operationId: 'readDelivery',
  method: 'GET',
  path: '/v3/alerts/deliveries/:deliveryId',
  ...SERVICE,
  summary: 'Read the message of a delivery, and the attempts to send it',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { path: deliveryPath },
  success: {
    status: 200,
    description: 'The delivery.',
    contents: { 'application/json': { schema: deliverySchema, example: EXAMPLE_DELIVERY } },
  },
  problems: callerProblems,
}

/** Sends a delivery again (docs/api/alerts.md#replay). */
export const replayDelivery: PermittedOperation = {
  operationId: 'replayDelivery',
  method: 'POST',
  path: '/v3/alerts/deliveries/:deliveryId/replay',
  ...SERVICE,
  summary: 'Send a delivery again that was parked or has ended, or at once if it waits',
  description: 'It keeps its id, so that a receiver which has it already can ignore it.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  parameters: { path: deliveryPath },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: replayDeliverySchema, example: {} } },
  },
  success: {
    status: 200,
    description: 'The delivery, which waits to be sent.',
    contents: { 'application/json': { schema: deliverySchema, example: EXAMPLE_DELIVERY } },
  },
  problems: [...callerProblems, { code: 'REQUEST_INVALID', status: 409 }],
}
